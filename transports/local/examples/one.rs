//! scratch
use unisono_kernel::{op::Op, region::Params};
fn main(){ let w=std::env::args().nth(1).unwrap(); let r=unisono_local::run(Params::new(1), |mut c| { let mut x=[1u8;8]; let mut best=f64::MAX; for _ in 0..50 { let t=std::time::Instant::now(); for _ in 0..200000 { match &w[..] { "b" => c.bcast(&mut x,0).unwrap(), "a" => c.allreduce_in_place(&mut x, Op::SumI64).unwrap(), _ => c.barrier().unwrap() } } best=best.min(t.elapsed().as_nanos() as f64/200000.0); } best }).unwrap(); println!("{w} {:?}", r); }
