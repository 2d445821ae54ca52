# An order in two steps, for worker.sh. Start one with
#   curl --json '{"workflowType":"order","taskQueue":"shell","input":{"json":"o-1"}}' http://127.0.0.1:50052/v1/workflows
queue=shell type=order

charge() { echo "{\"charged\":\"$1\"}"; }
ship() { echo "shipped $1"; }

workflow() { # INPUT; prints the run's output
	step charge charge "$1" >/dev/null || return
	step ship ship "$1"
}
