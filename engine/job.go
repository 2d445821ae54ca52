package engine

// JobType is the workflow type of the jobs of AGQ, whose workers run commands that somebody else wrote.
const JobType = "agq.job"

// MaxJobLosses is MaxLeaseLosses of a job: a command that kills its worker is known after fewer losses,
// because a worker of AGQ that dies is started again by nobody but a supervisor.
const MaxJobLosses = 3

// LossLimit returns how many lost workers in a row fail a run of the type.
func LossLimit(workflowType string) int {
	if workflowType == JobType {
		return MaxJobLosses
	}
	return MaxLeaseLosses
}
