//! What every store does, and what the one in memory does besides.
//!
//! A further store gets a module here that says how one is made and calls `every_store!` with
//! that; nothing of the suite is written again.

mod conformance;
mod listing;
mod memory;
mod records;
mod signals;

/// The tests of the whole suite for one kind of store, made by `$make`: an expression that gives
/// an asynchronous function without arguments whose result is a new, empty store.
macro_rules! every_store {
    ($make:expr) => {
        every_store! { $make;
            conformance {
                nothing_is_known_that_was_not_put,
                what_was_put_is_loaded_whole,
                what_is_kept_stays_and_what_is_removed_is_gone,
                one_of_many_that_begin_at_once_wins,
                no_change_of_many_is_lost,
                changes_of_other_threads_do_not_disturb,
                principals_never_meet,
                time_does_not_go_back,
            }
            listing {
                the_thread_updated_last_comes_first,
                pages_show_every_thread_once,
                a_place_in_the_list_stays_while_threads_come_and_go,
                a_page_of_one_agent_is_full,
                lists_of_principals_never_meet,
            }
            signals {
                a_run_is_told_to_stop_and_no_other_one,
                a_run_that_is_renewed_is_told_still,
                nobody_tells_a_run_that_is_over,
                a_thread_is_at_rest_when_its_run_is_over,
                a_thread_that_is_forgotten_is_at_rest,
            }
        }
    };
    ($make:expr; $($topic:ident { $($property:ident,)* })*) => {$(
        mod $topic {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $property() {
                    crate::store::$topic::$property($make).await;
                }
            )*
        }
    )*};
}
use every_store;
