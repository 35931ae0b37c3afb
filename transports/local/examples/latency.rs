//! scratch
use unisono_kernel::{op::Op, region::Params, select::*, datatype::Data};
fn pin(c: usize){ unsafe extern "C" { fn sched_setaffinity(p:i32,n:usize,m:*const u64)->i32; } let m=1u64<<c; unsafe { sched_setaffinity(0,8,&m); } }
fn main(){
  let p: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
  let n: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
  let mut params = Params::new(p).with_cico();
  if let Some(k)=std::env::args().nth(3){params.lines=k.parse().unwrap();}
  if let Some(k)=std::env::args().nth(4){params.queue_fragment=k.parse().unwrap();}
  if let Some(k)=std::env::args().nth(5){params.queue_slots=k.parse().unwrap();}
  let r = unisono_local::run(params, |mut c| {
    pin(c.rank() as usize % 2);
    let mut out = vec![];
    let mut x=[1u8;8];
    c.barrier().unwrap();
    for which in 0..5 {
      let t=std::time::Instant::now();
      for i in 0..n { match which {
        0 => c.bcast(&mut x, 0).unwrap(),
        1 => c.bcast(&mut x, (i % p as u64) as u32).unwrap(),
        2 => c.barrier().unwrap(),
        3 => c.allreduce_in_place(&mut x, Op::SumI64).unwrap(),
        _ => c.barrier_with(BarrierAlgorithm::Central).unwrap(),
      } }
      out.push(t.elapsed().as_nanos() as f64/n as f64);
      c.barrier().unwrap();
    }
    for sz in [1024usize, 8192, 65536, 524288, 4<<20] { for alg in [BcastAlgorithm::Queue, BcastAlgorithm::from_name("cico-binary").unwrap()] {
      let mut b = vec![1u8; sz*(64<<20>>22).max(1)*4]; let nb=b.len()/sz;
      let it = ((1u64<<28)/sz as u64).min(20000) as usize;
      c.barrier().unwrap();
      let t=std::time::Instant::now();
      for i in 0..it { c.bcast_with(Data::bytes_mut(&mut b[(i%nb)*sz..][..sz]), 0, alg).unwrap(); c.barrier().unwrap(); }
      out.push(t.elapsed().as_nanos() as f64/it as f64);
    }}
    out
  }).unwrap();
  let mut m = vec![0f64; r[0].len()];
  for v in &r { for (a,b) in m.iter_mut().zip(v) { *a = a.max(*b); } }
  eprintln!("p={p} bcast fixed {:.0} rotating {:.0} barrier {:.0} allreduce {:.0} central {:.0}", m[0],m[1],m[2],m[3],m[4]);
  for (i,s) in ["1K","8K","64K","512K","4M"].iter().enumerate(){ println!("  {s}: queue {:.2} us cico {:.2} us", m[5+2*i]/1e3, m[6+2*i]/1e3); }
}
