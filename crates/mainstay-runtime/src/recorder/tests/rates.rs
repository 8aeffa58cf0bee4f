//! How fast a lane is; run by hand with `MAINSTAY_RATES=1` and `--release --nocapture`.
