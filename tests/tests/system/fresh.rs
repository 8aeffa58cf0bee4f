//! Processes that come up at the same moment, before there is a file.

use mainstay_env::{Env, block_on};
use mainstay_tests::load;

use crate::process::{Shop, Worker};

#[test]
fn processes_that_make_the_file_at_once_all_come_up_on_one_schema() {
    let env = Env::system("test").expect("a thread");
    for _ in 0..5 {
        let shop = Shop::planned();
        let workers: Vec<Worker> = ["w1", "w2", "w3"].iter().map(|name| Worker::start(&shop.orders(name))).collect();
        for worker in workers {
            worker.end();
        }
        let store = block_on(shop.opened(&env));
        block_on(load::register(&*store)).expect("the schema is whole");
        let leases = block_on(store.lease_list(&load::APP.into())).expect("a list").leases;
        assert_eq!(leases, [], "each process opened its lease and ended it");
    }
}
