//! The ladder of the shared PostgreSQL schema: numbers 1 to 125, as the DBOS SDKs count them.

use crate::Step;

/// A step whose file is `FOLDER/DIGITS_NAME.sql`.
macro_rules! step {
    ($number:literal, $digits:literal, $folder:literal, $name:literal, $online:literal, $checksum:literal) => {
        Step {
            number: $number,
            name: $name,
            sql: include_str!(concat!("../", $folder, "/", $digits, "_", $name, ".sql")),
            online: $online,
            checksum: $checksum,
        }
    };
}

/// A step in a transaction.
macro_rules! whole {
    ($number:literal, $digits:literal, $folder:literal, $name:literal, $checksum:literal) => {
        step!($number, $digits, $folder, $name, false, $checksum)
    };
}

/// A step of the shared ladder outside a transaction.
macro_rules! online {
    ($number:literal, $digits:literal, $folder:literal, $name:literal, $checksum:literal) => {
        step!($number, $digits, $folder, $name, true, $checksum)
    };
}

/// The shared schema, in order; a number without statements is only counted.
///
/// ```
/// let last = mainstay_migrations::POSTGRES.last().expect("a ladder");
/// assert_eq!((last.number, last.online), (125, true));
/// ```
pub const POSTGRES: &[Step] = &[
    whole!(1, "001", "postgres", "base", "7a6467ef5fb6ede121195d5824e14a4e9be1b78521b306a00e287718e8bb9bfd"),
    whole!(2, "002", "postgres", "partition_key", "690b618a358d16317fd9881c8a56cfc748d04365291fd403b2bbf3385a112e25"),
    whole!(
        3,
        "003",
        "postgres",
        "index_queue_status_started",
        "fa0aed1db3abd944d6836f73278f6f51f6ea243cc5991f1e164e069292334178"
    ),
    whole!(4, "004", "postgres", "forked_from", "630f230a3a234f908f0bc46a971553d857e6039acd1a0e155e1794a37ac196f7"),
    whole!(5, "005", "postgres", "step_times", "a7c9813d08e34b9f83933b0619539939587332aa3e429a34a0d3f486fcd40c72"),
    whole!(6, "006", "postgres", "events_history", "a8e962b1f89d5b010bfd76422397630747e8467ab605637e2e86a86a1dc2941f"),
    whole!(7, "007", "postgres", "owner", "67833992b3bdf079304e65433cfa04e850e51c9895d91b96d2ffee2a45501462"),
    whole!(8, "008", "postgres", "parent", "d0d2ddf3612ee767178eea6742e9ffeec389ddeba9247a22abb701df3961904c"),
    whole!(9, "009", "postgres", "schedules", "d5047646a34b24e69b0c59f00a2fad0299debdad6c021b047756692089588988"),
    whole!(10, "010", "postgres", "message_key", "797d35a27d79138d4f8d2c4d457d33f92f5cf7c833b4b52ae246161ce22ad2da"),
    whole!(11, "011", "postgres", "serialization", "b63f51eda1202c192d7f91cad2701f5b70ab02b5dd2466f9495c2fe9a6f11544"),
    whole!(12, "012", "postgres", "consumed", "f8ba5201954dc56d7c8703f5ab054e8e0e72cb214444290cb42b68726c3a3a25"),
    whole!(
        13,
        "013",
        "postgres",
        "application_versions",
        "cca28880327b86414958e192c888d5f87215c565ef0a066dc55c707f35dcd044"
    ),
    whole!(
        14,
        "014",
        "postgres",
        "client_functions",
        "9184de34ad2c2b817dc9a00ffebdf9e7fede3ba57812ec3c6b5eff6a1df7de45"
    ),
    whole!(
        15,
        "015",
        "postgres",
        "schedule_backfill",
        "7b88d8450dd8826e10cd2be4fea0760bc5789f72602422b45334807184bec62e"
    ),
    whole!(16, "016", "postgres", "delay", "e90e6428fe00eb919567f614426e1fa880c195631f552252255af3b903c28081"),
    whole!(17, "017", "postgres", "schedule_queue", "2750345afd495a1a9d2428b58d9fc1db65a4d21133bdbe2d9671aceed8350fe6"),
    whole!(
        18,
        "018",
        "postgres",
        "was_forked_from",
        "c302404ba3b63815b15c679f5026c841c99cea2f56b7f0fc9d4f2116123ba80f"
    ),
    whole!(
        19,
        "019",
        "postgres",
        "index_step_times",
        "a51f5b9df083f27bc6f0efcc4cbe85f6de00dbfa799e05b506b0b0fb762e4c4e"
    ),
    whole!(
        20,
        "020",
        "postgres",
        "pin_search_path",
        "1c275fb6b2309041379d3a9bfdf6cdd6979fce3fbe9c1faca5be73b566e63b2a"
    ),
    whole!(21, "021", "postgres", "queues", "b74f9c0846ab9aae8366a861e91b6aface01fb762a97deba83aad1c4f70f0956"),
    online!(
        22,
        "022",
        "postgres",
        "drop_workflow_status_forked_from",
        "1ea668e1407ad11d097abc3700b2cafc584c9c776a956ac3638f62e0d5c58a74"
    ),
    online!(
        23,
        "023",
        "postgres",
        "create_workflow_status_forked_from",
        "286eb5768d90a8ee3ed3983fe0220005bb1afb327fa4b7d60a06d6ff4c88c07b"
    ),
    online!(
        24,
        "024",
        "postgres",
        "drop_workflow_status_parent_workflow_id",
        "62f77e7ed12b9766aeae35d3459a88d5a27608f065b2097bf9d82b1d2b0274fe"
    ),
    online!(
        25,
        "025",
        "postgres",
        "create_workflow_status_parent_workflow_id",
        "8b5a656ec319aec53eba420afba631c902288205e72f77332b39f50c623c37f6"
    ),
    online!(
        26,
        "026",
        "postgres",
        "drop_workflow_status_executor_id_index",
        "61f8aca4bec9c3c50ab9cc4f7efc4e3c8d4ba397ca27aa04251c39859c7eb851"
    ),
    online!(
        27,
        "027",
        "postgres",
        "create_uq_workflow_status_dedup_id",
        "771b964b26af9ec84e8b7364d0ba38d068639905aea6e8e38cbc13bc235343ea"
    ),
    whole!(
        28,
        "028",
        "postgres",
        "drop_dedup_constraint",
        "ecfaad485c41a09f1a9ba7f96ce1e975ea858fc82ede7a46e8272331b48ac13c"
    ),
    online!(
        29,
        "029",
        "postgres",
        "create_workflow_status_pending",
        "4b9d0265aac7fc9690e4463b75742cf1b20b74a373ff612e4b69375ea119223a"
    ),
    online!(
        30,
        "030",
        "postgres",
        "create_workflow_status_failed",
        "89a9b8eb6e22c5d4af4b83099df2b4cda24da8c1c0a8774b8651a85500783b92"
    ),
    online!(
        31,
        "031",
        "postgres",
        "drop_workflow_status_status_index",
        "66fd0b571c1fbefed050838b3396bbe7f6be882e8a9f6d3028be3504eddcd542"
    ),
    online!(
        32,
        "032",
        "postgres",
        "create_workflow_status_in_flight",
        "9010ed9f2067f32270251cebd3caeaf4f1e49e4435c387f326ca0ffee44717a9"
    ),
    whole!(33, "033", "postgres", "rate_limited", "e980a197351ea8981d85c42ca7f4fa3c2ebd9c3847239ec9a5b01ba352d8fb09"),
    online!(
        34,
        "034",
        "postgres",
        "create_workflow_status_rate_limited",
        "a6bf7df64d0185a25151645df8591fce2b4de9217eda14035c3c77d654fbdc08"
    ),
    online!(
        35,
        "035",
        "postgres",
        "drop_workflow_status_queue_status_started",
        "ae041d9cf92c46b38d975cfb870d2e5085ed2e9389d1750467bd5cea1625da11"
    ),
    whole!(36, "036", "postgres", "completed_at", "11138474b642398c7f41bdd24ef03f925d2b00bc91ba574a7a4066d58f64e2d1"),
    online!(
        37,
        "037",
        "postgres",
        "create_workflow_status_started_at",
        "8f563650c16ddb2c3f08ba6b061c6c08a936f94b37c50a709dba663d495bbbec"
    ),
    whole!(
        38,
        "038",
        "postgres",
        "enqueue_with_delay",
        "4e1523860a0c75bce0875ec7714758eb29ce91c6e8aa87d572e809d989b65475"
    ),
    whole!(
        39,
        "039",
        "postgres",
        "streams_trigger",
        "9f093b0f70cf9980386ed4201a6b7f1823901210f1eaf599d849abda6be23550"
    ),
    whole!(40, "040", "postgres", "attributes", "bd2a7edc013d7ae5c805222ded9794faf3bfa815d61c8e866a04ab62e81d41dc"),
    whole!(41, "041", "postgres", "schedule_name", "9ce1fbb5cba41506fdca7154b6902ab66335ea8840655fba2e5bf195c3558848"),
    whole!(42, "042", "postgres", "debounce", "8dbd22da621ece162889a472b525650092bd77908666923a16c538a1063f6a99"),
    whole!(
        43,
        "043",
        "postgres",
        "drop_streams_trigger",
        "aa2b70f3bb28b0050cf1803d1a6296f65b7ea5baec679f4861fb2def681f6662"
    ),
    whole!(
        44,
        "044",
        "postgres",
        "drop_events_trigger",
        "c260deefe1f9d39215b49bc2e0ee9eed5dcd0cb75f4cdf3ce39ed93e40a9c246"
    ),
    online!(
        45,
        "045",
        "postgres",
        "create_workflow_status_partition_dequeue",
        "ef5ecce0646a222aacfa783a7a24acb8ae2d28a93ace769247b29dd842649515"
    ),
    online!(
        46,
        "046",
        "postgres",
        "create_workflow_status_partition_dequeue_v2",
        "a70d03b203211b8dc5fc89154dc41ef222f7375b0bce43b7f133fa7f6d0a7489"
    ),
    online!(
        47,
        "047",
        "postgres",
        "drop_workflow_status_partition_dequeue",
        "2f98450276c479306791d41cd8664a5c6d7cb63a10f03420dc74c73127d99a46"
    ),
    Step::empty(48),
    Step::empty(49),
    Step::empty(50),
    Step::empty(51),
    Step::empty(52),
    Step::empty(53),
    Step::empty(54),
    Step::empty(55),
    Step::empty(56),
    Step::empty(57),
    Step::empty(58),
    Step::empty(59),
    Step::empty(60),
    Step::empty(61),
    Step::empty(62),
    Step::empty(63),
    Step::empty(64),
    Step::empty(65),
    Step::empty(66),
    Step::empty(67),
    Step::empty(68),
    Step::empty(69),
    Step::empty(70),
    Step::empty(71),
    Step::empty(72),
    Step::empty(73),
    Step::empty(74),
    Step::empty(75),
    Step::empty(76),
    Step::empty(77),
    Step::empty(78),
    Step::empty(79),
    Step::empty(80),
    Step::empty(81),
    Step::empty(82),
    Step::empty(83),
    Step::empty(84),
    Step::empty(85),
    Step::empty(86),
    Step::empty(87),
    Step::empty(88),
    Step::empty(89),
    Step::empty(90),
    Step::empty(91),
    Step::empty(92),
    Step::empty(93),
    Step::empty(94),
    Step::empty(95),
    Step::empty(96),
    Step::empty(97),
    Step::empty(98),
    Step::empty(99),
    whole!(
        100,
        "100",
        "postgres",
        "application_of_workflows",
        "eef1ebcef7f4ed4547b989a73c709840eb1f46b1391c2adf1a6dc3f670d6fee6"
    ),
    whole!(
        101,
        "101",
        "postgres",
        "application_of_queues",
        "bea8cc7265920572ffb0d556dff0427266155c280eac6c93b2210c832f88d783"
    ),
    whole!(
        102,
        "102",
        "postgres",
        "application_of_schedules",
        "4875a8131319572b8da4bf57895a64f00fc4cfeac2a0b75b86bdd57f3318be04"
    ),
    whole!(
        103,
        "103",
        "postgres",
        "application_of_versions",
        "2bd01e40f4d08722c0d0c2160b2f9b21f30e890800df615651d2c88125b416f7"
    ),
    whole!(
        104,
        "104",
        "postgres",
        "application_of_steps",
        "e0a817d2665d1b5c58f056d7493de5ca3da3daf5e97d1bd4c31b885d669aea06"
    ),
    whole!(
        105,
        "105",
        "postgres",
        "enqueue_with_application",
        "6efb9baa42456a8c658963e3b64735e536e57b03b78e1fdfdb2ce08b34aebb8d"
    ),
    whole!(
        106,
        "106",
        "postgres",
        "unique_owner_version",
        "f395125829396f556fd1ed3fccdb67381d29a35e30b3bc81c7242a96060032d2"
    ),
    online!(
        107,
        "107",
        "postgres",
        "create_uq_application_versions_unclaimed_version",
        "c3b2378e8afe168ea756121365078629e46a785dbd260ef3de714dee62699816"
    ),
    whole!(
        108,
        "108",
        "postgres",
        "partition_limits",
        "1856f5c6bdeef71e45bcbcc7d1b0b3425614e260e1e1ad86306cee61fc3c2ea7"
    ),
    whole!(
        109,
        "109",
        "postgres",
        "payload_tables",
        "aa93af1c76edd88fec345aa7174435c9ae6e81cd43ce1eb9d6e26666ea3feb0b"
    ),
    whole!(
        110,
        "110",
        "postgres",
        "step_retention",
        "444b82e3bb904389ffd42849a862dbb4119ae423a6f2381f1fb0653624ec4b91"
    ),
    online!(
        111,
        "111",
        "postgres",
        "create_operation_outputs_retention",
        "4047ebcd80182bb3c61d8daad2d33d583cabbe099f93cb085afcfb529f9e8512"
    ),
    whole!(
        112,
        "112",
        "postgres",
        "drop_step_foreign_key",
        "100c99a292950db501cec464931d1e819c71149920558b2667d2d2fe47b586d8"
    ),
    whole!(
        113,
        "113",
        "postgres",
        "enqueue_splits_inputs",
        "24bf1c73bed54e80a708733bde41d13e33179883e83762ff7fb0ec4a1c3e7f94"
    ),
    online!(
        114,
        "114",
        "postgres",
        "drop_notifications",
        "6b1c400c1ec05abadb5e90d145669a5f4c028160e367be350e2ca434a75829e1"
    ),
    online!(
        115,
        "115",
        "postgres",
        "create_workflow_status_in_flight_v2",
        "fb3f7a11eeab63593bf8f92053900a858c8868ddea4530a66f546ba5c6cb0d51"
    ),
    online!(
        116,
        "116",
        "postgres",
        "drop_workflow_status_in_flight",
        "d943f11014b4f9cd7a3fc0e35ce6474958ca57216175611b8e7d5d890e3d1677"
    ),
    online!(
        117,
        "117",
        "postgres",
        "create_workflow_status_partition_dequeue_v3",
        "81710b8e4464288d888ba1fb0bd5bfbeea7ec6ebe66d306e6d22e1287f9f2e5a"
    ),
    online!(
        118,
        "118",
        "postgres",
        "drop_workflow_status_partition_dequeue_v2",
        "255e5de531b13ef08c95790cd6449a7b2af4bdd72c195c95b9ec672e61d76def"
    ),
    online!(
        119,
        "119",
        "postgres",
        "create_operation_outputs_completed_at_function_name_v2",
        "98bdffb6ec72b59d273619a70f313cd9926eebe8545e70d02d84f12c701881fa"
    ),
    online!(
        120,
        "120",
        "postgres",
        "drop_operation_outputs_completed_at_function_name",
        "76af8a9d3ecfde548e0fde2312c2c9fb05412cdad2981384b0b9bd88fe9dc704"
    ),
    whole!(121, "121", "postgres", "consumed_by", "94a898edd3d686df904fda65b35cc0e301493158337cc1038088a04275947beb"),
    online!(
        122,
        "122",
        "postgres",
        "create_workflow_status_deadline",
        "59a26f5cfc529c866bfa30a36f96da9fc0d402314a721cfad09e4df015d597a7"
    ),
    whole!(123, "123", "postgres", "creator", "143d50abbbac70ec7e2de47cf078a21fff340f0ceefd614974b5df1ff53ff2f4"),
    online!(
        124,
        "124",
        "postgres",
        "create_application_versions_timestamp",
        "83fac731ea59ae0af19718fe0b7616aa703593801cedde746f8ff302695d1d8e"
    ),
    online!(
        125,
        "125",
        "postgres",
        "create_application_versions_owner_timestamp",
        "e8935dec8bcebdfc7b0378b712b9d2c63b3771d9d72143b2c2b97b26c507fc8d"
    ),
];

/// The tables of this project alone, in the schema `mainstay` that every installation in a database shares.
pub const OWN: &[Step] =
    &[whole!(1, "001", "own", "base", "4a430a91b4e79f4a67a26094abae1a9d48909644352bb10ca70d6b99c67724d5")];
