package agq_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// keyed is a server with keys.
type keyed struct {
	*fixture
	admin string
}

func startKeyed(t *testing.T) *keyed {
	t.Helper()
	f := start(t)
	k := &keyed{fixture: f}
	k.admin = k.key(&kagziv1.Key{Name: "root", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN})
	return k
}

func (k *keyed) key(key *kagziv1.Key) string {
	k.Helper()
	ctx := metadata.NewIncomingContext(k.Context(), metadata.Pairs("authorization", "Bearer "+k.admin))
	answer, err := kagziv1.NewAdminServiceClient(k.conn).CreateKey(ctx, &kagziv1.CreateKeyRequest{Key: key})
	if err != nil {
		k.Fatal(err)
	}
	return answer.Secret
}

func TestKeysSayWhoMay(t *testing.T) {
	k := startKeyed(t)
	worker := k.key(&kagziv1.Key{Name: "workers", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"default"}})
	other := k.key(&kagziv1.Key{Name: "others", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"default"}})
	client := k.key(&kagziv1.Key{Name: "clients", Role: kagziv1.KeyRole_KEY_ROLE_CLIENT, Namespaces: []string{"default"}})
	bound := k.key(&kagziv1.Key{Name: "bound", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"default"},
		WorkerIds: []string{"press"}})

	c := k.dial()
	c.want("-NOAUTH Authentication required", "PING")
	c.want("-NOAUTH Authentication required", "CLIENT", "SETINFO", "LIB-NAME", "redis-rs")
	c.want("-NOAUTH HELLO must be called…", "HELLO", "3")
	c.want("-WRONGPASS …", "AUTH", "kz_nonsense")
	c.want("-WRONGPASS …", "HELLO", "3", "AUTH", "default", "x")
	c.want("-NOAUTH Authentication required", "PLAN.LIST")
	c.want("+OK", "AUTH", client)
	c.want("$echo", "PLAN.SUBMIT", echoPlan)
	answer := c.do("ACTION.SUBMIT", `{"action_id":"a","plan_id":"echo","inputs":[{"word":"x"},{"word":"y"}]}`)
	jobs := idsIn(t, answer)
	c.want("-NOPERM …", "BRPOP", "queue:ready", "1")

	w := k.dial()
	w.want("%[$server…", "HELLO", "3", "AUTH", "w1", worker)
	w.want("-ERR this connection speaks for the worker w1…", "PING", "w2")
	w.want("-NOPERM …", "PLAN.LIST")
	w.want("-NOPERM …", "ACTION.SUBMIT", `{"action_id":"b","plan_id":"echo","inputs":[{"word":"x"}]}`)
	w.want("$"+jobs[0], "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	w.want(`${"job_id":"`+jobs[0]+`"…`, "GET", "job:"+jobs[0])
	w.want("${…", "GET", "plan:echo")
	w.want("nil_", "GET", "job:"+jobs[1]) // not one that it holds
	w.want("nil_", "GET", "plan:none")

	thief := k.dial() // the same id with another key is another worker
	thief.want("+OK", "AUTH", "w1", other)
	thief.want("-ERR Job "+jobs[0]+" is not claimed by worker w1…", "SET", "job:"+jobs[0]+":status", "completed")
	thief.want("nil$", "GET", "job:"+jobs[0])
	thief.want("-ERR …", "BRPOP", "queue:ready", "1")

	b := k.dial()
	b.want("+OK", "AUTH", bound) // the key says who
	b.want("$"+jobs[1], "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	b.want("-ERR this connection speaks for the worker press…", "PING", "w9")

	again := k.dial() // the report on another connection, by the same id and key
	again.want("+OK", "AUTH", "w1", worker)
	again.want("+OK", "SET", "job:"+jobs[0]+":stdout", "x")
	again.want("+OK", "SET", "job:"+jobs[0]+":status", "completed")
	if got := c.do("JOB.STATUS", jobs[0]); !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("the job is %s", got)
	}
}

func TestAConnectionEndsWithItsKey(t *testing.T) {
	k := startKeyed(t)
	worker := k.key(&kagziv1.Key{Name: "workers", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"default"}})
	w := k.dial()
	w.want("+OK", "AUTH", "w1", worker)
	w.send("BRPOP", "queue:ready", "0")
	root := k.dial()
	root.want("+OK", "AUTH", k.admin)
	for !strings.Contains(root.do("METRICS"), "$popping_workers $1") {
	}
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+k.admin))
	admin := kagziv1.NewAdminServiceClient(k.conn)
	keys, err := admin.ListKeys(ctx, &kagziv1.ListKeysRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys.Keys {
		if key.Name == "workers" {
			if _, err := admin.RevokeKey(ctx, &kagziv1.RevokeKeyRequest{KeyId: key.KeyId}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := w.answer(); got != "nil*" {
		t.Errorf("the pop is answered %q", got)
	}
	w.closed()
}
