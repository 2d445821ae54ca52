package agq_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestGoRedisConnectsWithoutOptions has go-redis submit a job and do it, over both protocols.
func TestGoRedisConnectsWithoutOptions(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			f := start(t)
			ctx := t.Context()
			connect := func(user string) *redis.Client {
				o, err := redis.ParseURL("redis://" + user + f.at)
				if err != nil {
					t.Fatal(err)
				}
				o.Protocol = protocol
				c := redis.NewClient(o)
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			client := connect("")
			if got, err := client.Ping(ctx).Result(); got != "PONG" || err != nil {
				t.Fatalf("PING is answered %q, %v", got, err)
			}
			if got, err := client.Do(ctx, "PLAN.SUBMIT", echoPlan).Text(); got != "echo" || err != nil {
				t.Fatalf("PLAN.SUBMIT is answered %q, %v", got, err)
			}
			answer, err := client.Do(ctx, "ACTION.SUBMIT",
				`{"action_id":"a","plan_id":"echo","inputs":[{"word":"hello"},{"word":"again"}]}`).Text()
			if err != nil {
				t.Fatal(err)
			}
			jobs := idsIn(t, answer)
			job := jobs[0]

			worker := connect("w1:any@")
			if got, err := worker.BRPop(ctx, time.Minute, "queue:ready").Result(); err != nil || len(got) != 2 ||
				got[0] != "queue:ready" || !strings.Contains(got[1], job) {
				t.Fatalf("BRPOP is answered %q, %v", got, err)
			}
			status, err := worker.Get(ctx, "job:"+job+":status").Result()
			if status != "running" || err != nil {
				t.Errorf("GET of the status is answered %q, %v", status, err)
			}
			if _, err := worker.Get(ctx, "job:none").Result(); !errors.Is(err, redis.Nil) {
				t.Errorf("GET of no job: %v, want redis.Nil", err)
			}
			pipe := worker.Pipeline()
			out := pipe.Set(ctx, "job:"+job+":stdout", "hello\n", 0)
			end := pipe.Set(ctx, "job:"+job+":status", "completed", 0)
			removed := pipe.LRem(ctx, "queue:processing", 1, job)
			if _, err := pipe.Exec(ctx); err != nil || out.Val() != "OK" || end.Val() != "OK" || removed.Val() != 1 {
				t.Errorf("a pipeline is answered %q, %q, %d: %v", out.Val(), end.Val(), removed.Val(), err)
			}
			f.wantStatus(job, "completed")
			next, err := worker.Do(ctx, "brpoplpush", "queue:ready", "queue:processing", 60).Text()
			if next != jobs[1] || err != nil {
				t.Errorf("BRPOPLPUSH is answered %q, %v", next, err)
			}
			// Not failed: it would be in the queue again a second later.
			if err := worker.Set(ctx, "job:"+next+":status", "completed", 0).Err(); err != nil {
				t.Error(err)
			}
			if _, err := worker.BRPop(ctx, time.Second, "queue:ready").Result(); !errors.Is(err, redis.Nil) {
				t.Errorf("BRPOP of an empty queue: %v, want redis.Nil", err)
			}
			err = worker.Set(ctx, "other", "x", 0).Err()
			if err == nil || !strings.Contains(err.Error(), "unknown key space") {
				t.Errorf("SET of a key that is not AGQ's: %v", err)
			}
		})
	}
}
