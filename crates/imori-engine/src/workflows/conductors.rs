//! The conductor of each runner that runs workflows.

use std::sync::Arc;

use imori_automation::chains::{Chain, ChainConductor, ChainContext};
use imori_automation::orquesta::Workflow;
use imori_automation::workflows::Conductor;

/// Whether a runner runs workflows.
pub(crate) fn is_workflow(runner: &str) -> bool {
    matches!(runner, "action-chain" | "orquesta")
}

/// The conductor for a definition, by the runner of its action.
///
/// # Errors
/// The definition is wrong, or the runner runs no workflows.
pub(super) fn conductor(
    runner: &str,
    definition: &str,
    context: ChainContext,
) -> Result<Arc<dyn Conductor>, String> {
    match runner {
        "action-chain" => {
            let chain = Chain::parse(definition).map_err(|error| error.to_string())?;
            Ok(Arc::new(ChainConductor::new(Arc::new(chain), context)))
        }
        "orquesta" => match Workflow::read(definition) {
            Ok(workflow) => Ok(Arc::new(workflow)),
            Err(problems) => {
                let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
                Err(format!("the workflow is wrong: {}", problems.join("; ")))
            }
        },
        other => Err(format!("runner `{other}` is not available here")),
    }
}
