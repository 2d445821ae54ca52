package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// Limits of one StartWorkflows call, and of the file that is read whole before anything starts.
const (
	maxBatchRuns  = 1000
	maxBatchBytes = 4<<20 - 64<<10 // below the server's 4 MiB by the call's own framing
	maxBatchFile  = 1 << 30
)

// startBatch is the starts of a file.
type startBatch struct {
	requests  []*kagziv1.StartWorkflowRequest
	lines     []int  // where each of them stands in the file, from 1 on; empty lines count
	requestID string // what the ids of requests that have none of their own begin with
}

// readBatch reads requests from JSON lines; what a line leaves out it takes from the request of the flags, and of the id of that request one of
// its own, which is the same whenever the file is read.
func readBatch(path string, in io.Reader, flags *kagziv1.StartWorkflowRequest) (*startBatch, error) {
	data, err := readAll(path, in, maxBatchFile)
	if err != nil {
		return nil, &usageError{err: fmt.Errorf("--batch: %w", err)}
	}
	batch := &startBatch{requestID: flags.GetRequestId()}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, err := batchLine(number, bytes.TrimSpace(line), flags)
		if err != nil {
			return nil, err
		}
		batch.requests, batch.lines = append(batch.requests, r), append(batch.lines, number)
	}
	if len(batch.requests) == 0 {
		return nil, usagef("--batch: no lines in %s", path)
	}
	return batch, nil
}

func batchLine(number int, line []byte, flags *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowRequest, error) {
	source := fmt.Sprintf("--batch, line %d", number)
	if err := checkJSON(source, line); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, usagef("%s: want an object with the fields of a start", source)
	}
	input, hasInput := fields["input"]
	delete(fields, "input") // it is any JSON here, not a payload message
	rest, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	own := &kagziv1.StartWorkflowRequest{}
	if err := protojson.Unmarshal(rest, own); err != nil {
		return nil, usagef("%s: %w", source, err)
	}
	r := proto.CloneOf(flags)
	if own.StartAt != nil || own.StartIn != nil { // merged with another moment, one of a whole second would get its fraction
		r.StartAt, r.StartIn = nil, nil
	}
	if own.DeadlineAt != nil {
		r.DeadlineAt = nil
	}
	proto.Merge(r, own)
	if own.GetRequestId() == "" {
		r.RequestId = fmt.Sprintf("%s:%d", flags.GetRequestId(), number)
	}
	if hasInput {
		if r.Input, err = jsonPayload(source, input); err != nil {
			return nil, err
		}
	}
	switch {
	case r.GetWorkflowType() == "":
		return nil, usagef("%s: workflow_type is missing, and no TYPE is given for all", source)
	case own.GetNamespace() != "":
		return nil, usagef("%s: a batch goes to one namespace; give it with --namespace", source)
	}
	return r, nil
}

// runStartBatch starts the runs in as many calls as their number and size need. Where it breaks off it says how to go on.
func runStartBatch(ctx context.Context, c *client, b *startBatch) error {
	requests := b.requests
	seq := &sequence{out: c.out}
	failed, existed, done := 0, 0, 0
	inputs := make([]*kagziv1.Payload, len(requests))
	for i, r := range requests {
		inputs[i] = r.GetInput()
	}
	c.out.warnLarge("input", inputs...)
	for done < len(requests) {
		part := nextBatch(requests[done:])
		for _, r := range part {
			r.Namespace = c.namespace
		}
		answer, err := c.StartWorkflows(ctx, &kagziv1.StartWorkflowsRequest{Requests: part})
		if err != nil {
			_ = seq.close() // the call's error is the one to report
			c.out.say("%d of %d had been handed in before", done, len(requests))
			if done > 0 || uncertain(err) || ctx.Err() != nil {
				c.out.say("to repeat it without a second run of any line add: --request-id %s", b.requestID)
			}
			return err
		}
		for i, r := range answer.GetResults() {
			if r.GetError() != nil {
				failed++
				c.out.say("--batch, line %d: %s", b.lines[done+i], render.ErrorLine(r.GetError()))
			}
			if r.GetStarted().GetAlreadyExists() {
				existed++
			}
			if err := seq.add(batchResultLine(r), render.Document(r)); err != nil {
				return err
			}
		}
		done += len(part)
	}
	if err := seq.close(); err != nil {
		return err
	}
	c.out.say("started %d of %d runs", len(requests)-failed-existed, len(requests))
	if existed > 0 {
		c.out.say("runs with the external ids of %d of them exist already", existed)
	}
	if failed > 0 {
		return codeError(ExitError)
	}
	return nil
}

// batchResultLine keeps the lines of output those of the file: a dash stands for a run that was not started.
func batchResultLine(r *kagziv1.StartWorkflowsResponse_Result) string {
	if r.GetError() != nil {
		return "-"
	}
	return render.Safe(r.GetStarted().GetRunId())
}

// nextBatch is as many of the requests as fit into one call, at least one.
func nextBatch(requests []*kagziv1.StartWorkflowRequest) []*kagziv1.StartWorkflowRequest {
	size := 0
	for i, r := range requests {
		size += proto.Size(r) + 64 // room for the request id and the framing
		if i > 0 && (i == maxBatchRuns || size > maxBatchBytes) {
			return requests[:i]
		}
	}
	return requests
}
