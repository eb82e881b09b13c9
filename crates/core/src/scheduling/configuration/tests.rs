use super::*;
use crate::scheduling::plugin_names::{FilterPlugin, ScorePlugin};
use crate::scheduling::profile::ScoringStrategy;
use crate::scheduling::registry::ExtensionPoint;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn reading(rest: &str) -> Reading {
    read(format!("{HEAD}{rest}").as_bytes())
}

fn valid(rest: &str) -> Configuration {
    let reading = reading(rest);
    assert_eq!(reading.problems, [], "{rest}");
    reading.configuration
}

/// Each problem with its line.
fn problems(rest: &str) -> Vec<String> {
    let problems = reading(rest).problems;
    let line = |problem: &Problem| problem.position.map_or(0, |position| position.line);
    let texts = problems.iter();
    texts
        .map(|problem| format!("{}: {problem}", line(problem)))
        .collect()
}

/// The only profile of a file with those `plugins`, in flow style.
fn profile_with(plugins: &str) -> Profile {
    let mut configuration = valid(&format!("profiles:\n- plugins: {plugins}\n"));
    configuration.profiles.remove(0)
}

fn names(profile: &Profile) -> (Vec<&'static str>, Vec<(&'static str, i64)>) {
    let filters = profile.filters.iter().map(|filter| filter.as_str());
    let scores = profile.scores.iter();
    let scores = scores.map(|(score, weight)| (score.as_str(), *weight));
    (filters.collect(), scores.collect())
}

#[test]
fn empty_file_is_the_default_configuration() {
    let configuration = valid("");
    let [profile] = configuration.profiles.as_slice() else {
        panic!("{:?}", configuration.profiles);
    };
    assert_eq!(format!("{profile:?}"), format!("{:?}", Profile::default()));
    assert_eq!(configuration.parallelism, 16);
    assert_eq!(configuration.queue_settings().backoff, Backoff::default());
    assert_eq!(configuration.leader_election, LeaderElection::default());
    assert!(configuration.enable_profiling && configuration.enable_contention_profiling);
    let plugins = &configuration.plugins["default-scheduler"];
    let at = |point| {
        let active = plugins.at(point).iter();
        active.map(|active| active.name).collect::<Vec<_>>()
    };
    assert_eq!(at(ExtensionPoint::QueueSort), ["PrioritySort"]);
    assert_eq!(at(ExtensionPoint::Bind), ["DefaultBinder"]);
    assert_eq!(
        at(ExtensionPoint::PostFilter),
        ["DynamicResources", "DefaultPreemption"]
    );
    assert_eq!(
        at(ExtensionPoint::PreEnqueue),
        ["SchedulingGates", "DynamicResources", "DefaultPreemption"]
    );
    assert_eq!(
        at(ExtensionPoint::Filter).last(),
        Some(&"NodeDeclaredFeatures")
    );
}

#[test]
fn example_has_a_most_allocated_profile() {
    let example = include_bytes!("../../../../../examples/scheduler-config.yaml");
    let Reading {
        configuration,
        problems,
    } = read(example);
    assert_eq!(problems, []);
    let default = configuration.profile("default-scheduler").unwrap();
    assert_eq!(format!("{default:?}"), format!("{:?}", Profile::default()));
    let packing = configuration.profile("bin-packing-scheduler").unwrap();
    assert_eq!(packing.fit.strategy, ScoringStrategy::MostAllocated);
    assert_eq!(packing.filters, FilterPlugin::ALL);
    let balanced = ScorePlugin::NodeResourcesBalancedAllocation;
    assert!(packing.scores.iter().all(|(plugin, _)| *plugin != balanced));
    assert_eq!(packing.scores[0], (ScorePlugin::NodeResourcesFit, 5));
    let changed = packing.changed_arguments();
    let fields: Vec<_> = changed.iter().map(|argument| argument.field).collect();
    assert_eq!(
        fields,
        ["scoringStrategy.type", "scoringStrategy.resources"]
    );
    assert!(configuration.profile("other").is_none());
}

/// The expectations are those of v1.36 pkg/scheduler/framework/runtime/framework_test.go:
/// overridden plugins first, then those of multiPoint, then the others.
#[test]
fn plugins_are_ordered_as_upstream_orders_them() {
    let default = Profile::default();
    let (filters, scores) = names(&default);

    let profile = profile_with("{score: {enabled: [{name: ImageLocality, weight: 7}]}}");
    let (same, first) = names(&profile);
    assert_eq!(same, filters);
    assert_eq!(first[0], ("ImageLocality", 7));
    assert_eq!(first[1..], scores[..6]);

    let profile = profile_with("{score: {enabled: [{name: ImageLocality}, {name: NodeAffinity}]}}");
    let first = names(&profile).1;
    assert_eq!(first[..2], [("ImageLocality", 1), ("NodeAffinity", 1)]);
    assert_eq!(first[2], ("TaintToleration", 3));

    // Enabled and disabled at the same point: it does not override, so it comes last.
    let profile = profile_with(
        "{score: {enabled: [{name: TaintToleration}], disabled: [{name: TaintToleration}]}}",
    );
    let own = names(&profile).1;
    assert_eq!(own.first(), Some(&("NodeAffinity", 2)));
    assert_eq!(own.last(), Some(&("TaintToleration", 1)));

    let profile = profile_with(
        "{filter: {disabled: [{name: '*'}], enabled: [{name: NodePorts}, {name: NodeName}]}}",
    );
    assert_eq!(
        names(&profile),
        (vec!["NodePorts", "NodeName"], scores.clone())
    );
}

#[test]
fn multi_point_replaces_defaults_where_they_stand() {
    // Named again without a weight, the default's weight is gone.
    let profile = profile_with("{multiPoint: {enabled: [{name: TaintToleration}]}}");
    let (filters, scores) = names(&profile);
    assert_eq!(filters, names(&Profile::default()).0);
    assert_eq!(scores[0], ("TaintToleration", 1));

    let profile = profile_with(
        "{multiPoint: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration, weight: 9}]}}",
    );
    let (filters, scores) = names(&profile);
    assert_eq!(filters.last(), Some(&"TaintToleration"));
    assert_eq!(scores.last(), Some(&("TaintToleration", 9)));

    let profile = profile_with(
        "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, \
         {name: NodeResourcesFit, weight: 4}]}}",
    );
    let expected = (vec!["NodeResourcesFit"], vec![("NodeResourcesFit", 4)]);
    assert_eq!(names(&profile), expected);
    assert!(!profile.preempts());

    // The weight at the point itself wins.
    let profile = profile_with(
        "{multiPoint: {enabled: [{name: NodeAffinity, weight: 4}]}, \
         score: {enabled: [{name: NodeAffinity, weight: 6}]}}",
    );
    assert_eq!(names(&profile).1[0], ("NodeAffinity", 6));
}

#[test]
fn preemption_can_be_switched_off() {
    let off = "{postFilter: {disabled: [{name: DefaultPreemption}]}}";
    assert!(!profile_with(off).preempts());
    assert!(profile_with("{filter: {disabled: [{name: NodeName}]}}").preempts());
}

#[test]
fn invalid_plugins_are_reported_with_upstreams_messages() {
    let of = |plugins: &str| problems(&format!("profiles:\n- plugins: {plugins}\n"));
    for (plugins, expected) in [
        (
            "{filter: {enabled: [{name: NodeAfinity}]}}",
            "4: profiles[0].plugins.filter.enabled[0].name: Invalid value: \"NodeAfinity\": \
             FilterPlugin \"NodeAfinity\" does not exist, did you mean \"NodeAffinity\"?",
        ),
        (
            "{multiPoint: {enabled: [{name: Coscheduling}]}}",
            "4: profiles[0].plugins.multiPoint.enabled[0].name: Invalid value: \"Coscheduling\": \
             plugin \"Coscheduling\" does not exist",
        ),
        (
            "{score: {disabled: [{name: ImageLocalty}]}}",
            "4: profiles[0].plugins.score.disabled[0].name: Invalid value: \"ImageLocalty\": plugin \
             \"ImageLocalty\" does not exist, did you mean \"ImageLocality\"?",
        ),
        (
            "{score: {enabled: [{name: NodeName}]}}",
            "4: profiles[0].plugins.score.enabled[0].name: Invalid value: \"NodeName\": plugin \
             \"NodeName\" does not extend ScorePlugin plugin",
        ),
        (
            "{score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}}",
            "4: profiles[0].plugins.score.enabled[1].name: Duplicate value: \"ImageLocality\": plugin \
             \"ImageLocality\" already registered as \"ScorePlugin\"",
        ),
        (
            "{multiPoint: {enabled: [{name: NodeAffinity}, {name: NodeAffinity}]}}",
            "4: profiles[0].plugins.multiPoint.enabled[0].name: Duplicate value: \"NodeAffinity\": \
             plugin \"NodeAffinity\" already registered as \"PreFilterPlugin\"",
        ),
        (
            "{filter: {enabled: [{name: EBSLimits}], disabled: [{name: GCEPDLimits}]}}",
            "4: profiles[0].plugins.filter.enabled[0]: Invalid value: \"EBSLimits\": was invalid in \
             version \"v1\" (KubeSchedulerConfiguration is version \
             \"kubescheduler.config.k8s.io/v1\")",
        ),
        (
            "{queueSort: {disabled: [{name: '*'}]}}",
            "4: profiles[0].plugins.queueSort: only one queue sort plugin required for profile with \
             scheduler name \"default-scheduler\", but got 0",
        ),
        (
            "{bind: {disabled: [{name: DefaultBinder}]}}",
            "4: profiles[0].plugins.bind: at least one bind plugin is needed for profile with \
             scheduler name \"default-scheduler\"",
        ),
        (
            "{filters: {}}",
            "4: profiles[0].plugins.filters: Unknown field: did you mean \"filter\"?",
        ),
    ] {
        assert_eq!(of(plugins), [expected]);
    }
}

#[test]
fn top_level_values_are_checked_with_upstreams_messages() {
    for (rest, expected) in [
        (
            "parallelism: 0\n",
            "3: parallelism: Invalid value: 0: should be an integer value greater than zero",
        ),
        (
            "percentageOfNodesToScore: 101\n",
            "3: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            "profiles:\n- percentageOfNodesToScore: -1\n",
            "4: profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
        ),
        (
            "podInitialBackoffSeconds: 0\n",
            "3: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            "podInitialBackoffSeconds: 11\n",
            "1: podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to \
             PodInitialBackoffSeconds",
        ),
        (
            "clientConnection: {burst: -1}\n",
            "3: clientConnection.burst: Invalid value: -1: must be non-negative",
        ),
        (
            "leaderElection:\n  leaseDuration: 10s\n",
            "4: leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than \
             `RenewDeadline`",
        ),
        (
            "leaderElection:\n  retryPeriod: -1s\n",
            "4: leaderElection.retryPeriod: Invalid value: \"-1s\": must be greater than zero",
        ),
        (
            "leaderElection:\n  resourceLock: endpoints\n",
            "4: leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must \
             be \"leases\"",
        ),
        (
            "extenders:\n- urlPrefix: http://localhost\n",
            "4: extenders[0]: Forbidden: extenders are not supported",
        ),
        (
            "metricsBindAddress: 0.0.0.0:10251\n",
            "3: metricsBindAddress: Unknown field: v1 has it no more, the flags --bind-address and \
             --secure-port say where to serve",
        ),
        (
            "podMaxBackofSeconds: 5\n",
            "3: podMaxBackofSeconds: Unknown field: did you mean \"podMaxBackoffSeconds\"?",
        ),
        (
            "parallelism: many\n",
            "3: parallelism: Invalid value: \"many\": must be a whole number of 32 bits",
        ),
        (
            "parallelism: 1\nparallelism: 2\n",
            "4: parallelism: Duplicate value: \"parallelism\": the key is already set in line 3",
        ),
        (
            "profiles: 5\n",
            "3: profiles: Invalid value: 5: must be a list",
        ),
        (
            "leaderElection: {leaseDuration: 15}\n",
            "3: leaderElection.leaseDuration: Invalid value: 15: must be a duration such as \"5m\"",
        ),
    ] {
        assert_eq!(problems(rest), [expected]);
    }
    valid("leaderElection: {leaderElect: false, resourceLock: endpoints, retryPeriod: -1s}\n");
    valid("extenders: []\nprofiles: []\nparallelism: null\n");
}

#[test]
fn profiles_have_unique_names_and_share_a_queue() {
    for (rest, expected) in [
        (
            "profiles:\n- {schedulerName: a}\n- {schedulerName: a}\n",
            vec!["5: profiles[1].schedulerName: Duplicate value: \"a\""],
        ),
        (
            "profiles:\n- {schedulerName: a}\n- {}\n",
            vec!["5: profiles[1].schedulerName: Required value"],
        ),
        (
            "profiles:\n- schedulerName: ''\n",
            vec!["4: profiles[0].schedulerName: Required value"],
        ),
        (
            "profiles:\n- {schedulerName: a}\n- schedulerName: b\n  plugins:\n    queueSort:\n      \
             enabled: [{name: PrioritySort}]\n",
            vec![
                "7: profiles[1].plugins.queueSort: Invalid value: \
                 {\"Enabled\":[{\"Name\":\"PrioritySort\",\"Weight\":0}],\"Disabled\":null}: must be \
                 the same for all profiles",
            ],
        ),
        (
            "profiles:\n- &a\n  schedulerName: a\n  plugins: {queueSort: {enabled: [{name: PrioritySort}]}}\n\
             - <<: *a\n  schedulerName: b\n  pluginConfig: [{name: PrioritySort, args: {x: 1}}]\n",
            vec![
                "9: profiles[1].pluginConfig.args: Invalid value: {\"x\":1}: queueSort must be the \
                 same for all profiles",
            ],
        ),
    ] {
        assert_eq!(problems(rest), expected);
    }
}

#[test]
fn the_percentage_of_a_profile_wins_over_that_of_all() {
    let percentages = |rest: &str| {
        let profiles = valid(rest).profiles.into_iter();
        let percentages = profiles.map(|profile| profile.percentage_of_nodes_to_score);
        percentages.collect::<Vec<_>>()
    };
    let two =
        "profiles:\n- {schedulerName: a, percentageOfNodesToScore: 0}\n- {schedulerName: b}\n";
    assert_eq!(percentages(two), [Some(0), None]);
    let all = format!("percentageOfNodesToScore: 30\n{two}");
    assert_eq!(percentages(&all), [Some(0), Some(30)]);
}

#[test]
fn problems_of_arguments_have_their_lines() {
    let rest = "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      \
                scoringStrategy:\n        type: MostAllocated\n        resources:\n        \
                - {name: cpu, weight: 101}\n        - {name: memory, wieght: 1}\n";
    assert_eq!(
        problems(rest),
        [
            "11: profiles[0].pluginConfig[0].args.scoringStrategy.resources[1].wieght: Unknown \
             field: did you mean \"weight\"?",
            "10: profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: Invalid \
             value: 101: resource weight of cpu not in valid range (0, 100]",
        ]
    );
}

#[test]
fn other_versions_and_kinds_are_refused() {
    let text =
        "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n";
    let texts = |text: &str| {
        let problems = read(text.as_bytes()).problems;
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        texts(text),
        [
            "apiVersion: Unsupported value: \"kubescheduler.config.k8s.io/v1beta3\": supported \
             values: \"kubescheduler.config.k8s.io/v1\"; other versions are not read, the rest is \
             checked as v1"
        ]
    );
    assert_eq!(texts("{}").len(), 2);
    assert_eq!(texts(""), ["kind: Required value: the file is empty"]);
    assert_eq!(
        texts("- a"),
        ["Invalid value: a list: the document must be a mapping"]
    );
    assert_eq!(texts(&format!("{HEAD}---\nx: 1\n")).len(), 1);
}
