package session

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func encoded[M proto.Message](t *testing.T, messages ...M) (batch [][]byte) {
	for _, m := range messages {
		raw, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, raw)
	}
	return batch
}

// numbersOf returns the numbers of a message: its own, or those of its batch.
func numbersOf(t *testing.T, m *kagziv1.SessionResponse) (numbers []int64) {
	if len(m.Batch) == 0 {
		return []int64{m.Seq}
	}
	for _, raw := range m.Batch {
		one := &kagziv1.SessionResponse{}
		if err := proto.Unmarshal(raw, one); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, one.Seq)
	}
	return numbers
}

func TestOutboxJoinsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free, room := make(chan error), make(chan struct{}, 64)
		var sent [][]int64
		o := &outbox{room: room, batches: true, stream: func(m *kagziv1.SessionResponse) error {
			err := <-free
			sent = append(sent, numbersOf(t, m))
			return err
		}}
		var broken error
		push := func(m outgoing) {
			room <- struct{}{}
			o.push(m, func(err error) { broken = err })
		}
		push(numbered(0))
		synctest.Wait() // it sends the first, alone
		push(numbered(1))
		push(numbered(2))
		large := numbered(3)
		large.message.Event = &kagziv1.SessionResponse_Error{
			Error: &kagziv1.ErrorDetail{Message: strings.Repeat("x", maxBatch)}}
		push(large)
		push(numbered(4))
		push(numbered(5))
		for range 3 {
			free <- nil
		}
		synctest.Wait()
		if len(room) != 2 {
			t.Errorf("%d places are taken, want those of 4 and 5", len(room))
		}
		free <- servertest.ErrBroken
		left := o.close()
		synctest.Wait()
		if want := [][]int64{{0}, {1, 2}, {3}, {4, 5}}; !slices.EqualFunc(sent, want, slices.Equal) {
			t.Errorf("sent %v, want %v", sent, want)
		}
		if broken == nil || len(left) != 2 || left[0].message.Seq != 4 {
			t.Errorf("broken %v, %d left, want both of the batch that broke", broken, len(left))
		}
	})
}

func TestOutboxJoinsTasks(t *testing.T) {
	o := &outbox{batches: true}
	for seq := range int64(40) {
		task := &kagziv1.Task{RunId: strings.Repeat("x", maxBatch/20)}
		o.put(outgoing{message: &kagziv1.SessionResponse{Seq: seq, Event: &kagziv1.SessionResponse_Task{Task: task}},
			unasked: true})
	}
	o.put(numbered(99))
	var sizes []int
	for left := o.next(nil); len(left) > 0; left = o.next(nil) {
		if sizes = append(sizes, len(left)); len(sizes) == 1 && left[0].message.Seq != 99 {
			t.Errorf("message %d goes before the answer", left[0].message.Seq)
		}
	}
	if !slices.Equal(sizes, []int{21, 20}) {
		t.Errorf("sends %v messages at a time, want the answer with 20 tasks, which fill a batch, then 20", sizes)
	}
}

func TestReceiveBatch(t *testing.T) {
	step := func(seq int64, run string) *kagziv1.SessionRequest {
		return &kagziv1.SessionRequest{Seq: seq, Operation: &kagziv1.SessionRequest_CompleteStep{
			CompleteStep: &kagziv1.CompleteStepRequest{RunId: run, LeaseToken: servertest.AToken, StepId: "s"}}}
	}
	beat := &kagziv1.SessionRequest{Seq: 4, Operation: &kagziv1.SessionRequest_Heartbeat{
		Heartbeat: &kagziv1.HeartbeatRequest{}}}

	receive := func(t *testing.T, request *kagziv1.SessionRequest) (answers []*kagziv1.SessionResponse, ended error) {
		synctest.Test(t, func(t *testing.T) {
			s := newTestService(writing{})
			defer s.pool.Close()
			in, answered := make(chan *kagziv1.SessionRequest), make(chan *kagziv1.SessionResponse, 8)
			ctx, end := context.WithCancel(t.Context())
			w := sessionOf(s, func(err error) { ended = err }, answered)
			go w.receive(ctx, context.WithoutCancel(ctx), &requests{ctx: ctx, in: in})
			in <- request
			synctest.Wait()
			err := ended
			end()
			synctest.Wait()
			ended = err // not that of the end of the test
			for close(answered); len(answered) > 0; {
				answers = append(answers, <-answered)
			}
		})
		return answers, ended
	}

	t.Run("executes_each_and_answers_in_the_order_of_a_run", func(t *testing.T) {
		answers, ended := receive(t, &kagziv1.SessionRequest{Batch: encoded(t,
			step(2, servertest.AnID), step(3, servertest.AnID), beat)})
		by := map[int64]*kagziv1.SessionResponse{}
		var steps []int64
		for _, a := range answers {
			by[a.Seq] = a
			if a.GetCompletedStep() != nil {
				steps = append(steps, a.Seq)
			}
		}
		if ended != nil || !slices.Equal(steps, []int64{2, 3}) || by[4].GetHeartbeat() == nil {
			t.Errorf("answers %v, ended %v", answers, ended)
		}
	})
	t.Run("refuses_one_with_an_operation_beside_it", func(t *testing.T) {
		both := step(2, servertest.AnID)
		both.Batch = encoded(t, step(3, servertest.AnID))
		for name, request := range map[string]*kagziv1.SessionRequest{
			"beside it": both, "in a batch": {Batch: encoded(t, both)}} {
			answers, ended := receive(t, request)
			if len(answers) != 0 || ended == nil || !strings.Contains(ended.Error(), "batch") {
				t.Errorf("%s: answers %v, ended %v, want an end that names the batch", name, answers, ended)
			}
		}
	})
	t.Run("ends_at_one_that_is_no_message", func(t *testing.T) {
		if _, ended := receive(t, &kagziv1.SessionRequest{Batch: [][]byte{{0xff}}}); ended == nil {
			t.Error("the session goes on")
		}
	})
}
