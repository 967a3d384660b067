//! A million requests that are dropped anywhere on their way leak no place.

use super::*;
use http_body::Body;
use http_body_util::Either;
use plimsoll_core::random::Random;

const WORKERS: u32 = 8;

/// A body that is whole, or one of several frames.
type AnyBody = Either<Full<Bytes>, Scripted>;

/// A handler that answers at once or when it is asked a second time, with a whole body or with two frames.
#[derive(Clone)]
struct Fast;

impl Service<Request<()>> for Fast {
    type Response = Response<AnyBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Answering {
        let path = request.uri().path();
        Answering { asks: u32::from(path.contains("later")), is_whole: !path.contains("frames") }
    }
}

struct Answering {
    asks: u32,
    is_whole: bool,
}

impl Future for Answering {
    type Output = Result<Response<AnyBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.asks > 0 {
            self.asks -= 1;
            return Poll::Pending;
        }
        Poll::Ready(Ok(Response::new(if self.is_whole {
            Either::Left(Full::from("whole"))
        } else {
            Either::Right(scripted([Step::Data("one"), Step::Later, Step::Data("two"), Step::Error]))
        })))
    }
}

type Way = Pin<Box<crate::request::future::ResponseFuture<Fast, ()>>>;
type Answered = Pin<Box<ResponseBody<AnyBody>>>;

/// The requests under way: at most this number of each kind.
struct UnderWay {
    ways: Vec<Way>,
    bodies: Vec<Answered>,
}

/// Polls, drops or goes on with any request that is under way.
fn step(all: &mut UnderWay, random: &mut Random) {
    let mut context = Context::from_waker(Waker::noop());
    let pick = |length: usize, random: &mut Random| random.bits() as usize % length;
    if random.bits().is_multiple_of(3) && !all.bodies.is_empty() {
        let number = pick(all.bodies.len(), random);
        let ends = random.bits().is_multiple_of(2)
            || matches!(
                all.bodies[number].as_mut().poll_frame(&mut context),
                Poll::Ready(None | Some(Err(_)))
            );
        if ends {
            all.bodies.swap_remove(number);
        }
    } else if !all.ways.is_empty() {
        let number = pick(all.ways.len(), random);
        if random.bits().is_multiple_of(2) {
            all.ways.swap_remove(number);
        } else if let Poll::Ready(Ok(response)) = all.ways[number].as_mut().poll(&mut context) {
            all.ways.swap_remove(number);
            all.bodies.push(Box::pin(response.into_body()));
        }
    }
}

#[test]
fn a_million_requests_dropped_anywhere_leak_no_place() {
    const REQUESTS: u64 = 1_000_000;
    let bench = Bench::new(workers(WORKERS).promises(|promises| promises.plants[0].queue.max_waiting = 40));
    let mut service = bench.layer.layer(Fast);
    let (mut random, mut all) = (Random::new(3), UnderWay { ways: Vec::new(), bodies: Vec::new() });
    let paths = ["/", "/later", "/frames", "/later/frames"];
    for number in 0..REQUESTS {
        bench.advance(Duration::from_micros(500));
        all.ways.push(Box::pin(service.call(request(paths[random.bits() as usize % paths.len()]))));
        for _ in 0..random.bits() % 5 {
            step(&mut all, &mut random);
        }
        if number % 2000 == 0 {
            bench.tick();
        }
        if all.ways.len() > 100 {
            all.ways.clear();
        }
    }
    drop(all);
    bench.assert_settled();
    assert_eq!(bench.counts().arrivals, REQUESTS);
    let Counts { outcomes, unserved, .. } = bench.counts();
    assert!(outcomes.iter().all(|count| *count > 1000) && unserved > 1000, "{outcomes:?} {unserved}");
    // All places can be taken again, and no more than there are.
    let held: Vec<_> = (0..=WORKERS).map(|_| call(&bench, &silent(), request("/"))).collect();
    assert_eq!(bench.under_way(), (WORKERS, 1));
    drop(held);
    bench.assert_settled();
}

/// A request that a handler works on.
struct AtWork(Arc<AtomicU64>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A handler that never answers, and notes the most requests that it had at once.
fn counting(at_work: &Arc<AtomicU64>, most: &Arc<AtomicU64>) -> Handler<Full<Bytes>> {
    let (at_work, most) = (at_work.clone(), most.clone());
    BoxCloneSyncService::new(tower::service_fn(move |_| {
        most.fetch_max(at_work.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let request = AtWork(at_work.clone());
        async move {
            let _request = request;
            pending().await
        }
    }))
}

/// Threads that race admit no more than there are places, and lose none.
#[test]
fn threads_that_start_and_drop_requests_at_once_never_exceed_the_places() {
    const EACH: u64 = 20_000;
    let bench = Bench::new(workers(WORKERS));
    let (at_work, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (bench, handler) = (&bench, counting(&at_work, &most));
            scope.spawn(move || {
                let (mut random, mut held) = (Random::new(thread), Vec::new());
                for _ in 0..EACH {
                    held.push(call(bench, &handler, request("/")));
                    held.iter_mut().for_each(|pending| drop(poll(pending)));
                    if held.len() > 12 || random.bits().is_multiple_of(2) {
                        held.swap_remove(random.bits() as usize % held.len());
                    }
                }
            });
        }
    });
    assert_eq!(most.load(Ordering::Relaxed), u64::from(WORKERS), "all places were taken, and no more");
    bench.assert_settled();
    assert_eq!(bench.counts().arrivals, 4 * EACH);
}
