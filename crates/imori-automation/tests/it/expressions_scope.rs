//! Statuses of tasks on routes.

use imori_automation::for_tests::Statuses;

#[test]
fn the_status_of_a_task_is_found_on_the_way_to_the_route() {
    let tasks = [(("a", 0), "succeeded"), (("b", 1), "failed"), (("b", 2), "running")];
    let statuses = Statuses {
        tasks: tasks.into_iter().map(|((task, route), status)| ((task.to_owned(), route), status)).collect(),
        routes: vec![
            vec![],
            vec!["a__t0".into()],
            vec!["a__t1".into()],
            vec!["a__t0".into(), "b__t0".into()],
        ],
    };
    let rows = [
        ("a", 0, "succeeded"),
        ("a", 3, "succeeded"),
        ("b", 3, "failed"),
        ("b", 0, "null"),
        ("c", 3, "null"),
        ("a", 9, "succeeded"),
    ];
    for (task, route, expected) in rows {
        assert_eq!(statuses.of(task, route), expected, "{task} on {route}");
    }
}
