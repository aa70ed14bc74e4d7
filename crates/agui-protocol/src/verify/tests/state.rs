//! Shared state and activities.

use super::*;

#[test]
fn state_and_activities() {
    each(
        &known(),
        &[
            (r#"STATE_DELTA "delta":[{"op":"replace","path":"/no","value":1}]"#, &[(1, "STATE-4")]),
            (r#"STATE_DELTA "delta":[{"op":"add","path":"/a/b","value":1}]"#, &[(1, "STATE-4")]),
            (r#"STATE_DELTA "delta":[{"op":"test","path":"/n","value":2}]"#, &[(1, "STATE-4")]),
            (
                r#"STATE_SNAPSHOT "snapshot":7
                   STATE_DELTA "delta":[{"op":"add","path":"/a","value":1}]"#,
                &[(2, "STATE-7"), (2, "STATE-4")],
            ),
            (
                r#"STATE_DELTA "delta":[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/no"}]
                   STATE_DELTA "delta":[{"op":"remove","path":"/a"}]"#,
                &[(1, "STATE-4"), (2, "STATE-4")],
            ),
            (r#"ACTIVITY_DELTA "messageId":"p","activityType":"P","patch":[]"#, &[(1, "ACT-2")]),
            (
                r#"ACTIVITY_SNAPSHOT "messageId":"p","activityType":"P","content":{}
                   ACTIVITY_DELTA "messageId":"p","activityType":"Q","patch":[]
                   ACTIVITY_DELTA "messageId":"p","activityType":"P","patch":[{"op":"remove","path":"/no"}]
                   ACTIVITY_DELTA "messageId":"p","activityType":"P","patch":[{"op":"replace","path":"","value":1}]"#,
                &[(2, "ACT-3"), (3, "STATE-4"), (4, "ACT-4")],
            ),
        ],
    );
    // Without the input nobody knows what a delta builds on.
    let delta = run(r#"STATE_DELTA "delta":[{"op":"remove","path":"/n"}]"#);
    assert_eq!(found(&delta, &VerifyInput::default()), []);
}
