package agq

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Keys say who may, ids say who holds: many workers may share a key, and a connection speaks for at most one
// worker, which it names in one of several ways (see bind). Only the instance that registered the id, which
// is the key and the id together, has the id's jobs.

// caller is what a connection may do.
type caller struct {
	known     bool // it may send every command, as far as its role allows
	open      bool // calls need no key
	key       string
	only      string // the worker id that the key is bound to; empty: not to one
	namespace string
	role      kagziv1.KeyRole
	ctx       context.Context // of its calls
}

// worksOnly says whether the key is one for workers, which read nothing but the jobs that they hold.
func (c *caller) worksOnly() bool { return c.role == kagziv1.KeyRole_KEY_ROLE_WORKER }

// admit lets a connection send all commands.
func (c *conn) admit(as caller) {
	c.caller = as
	c.caller.ctx = c.callContext()
	c.reader.limit = maxCommand
	_ = c.raw.SetReadDeadline(time.Time{})
}

// authenticate checks a key. With a user name other than "default", the connection speaks for the worker of
// that name.
func (c *conn) authenticate(user, secret string) (refusal string) {
	if user == "default" {
		user = ""
	}
	as := caller{known: true, open: true, namespace: "default"}
	if !c.door.server.Keyless(c.ctx) {
		var err error
		if as, err = c.callerOf(secret); err != nil {
			if text := errorText(err); !strings.HasPrefix(text, "NOAUTH") {
				return text
			}
			return "WRONGPASS invalid username-password pair or user is disabled."
		}
	}
	if c.identity != "" && as.key != c.caller.key {
		c.leave() // another key: the worker of the first is another one
		c.identity, c.tools = "", nil
		c.mu.Lock()
		c.fenced, c.popped = false, 0
		c.mu.Unlock()
	}
	before := c.secret
	c.secret = secret
	c.admit(as)
	if user == "" && c.identity == "" {
		user = as.only
	}
	if user == "" {
		return ""
	}
	if text := c.bind(user); text != "" {
		c.secret = before
		return text
	}
	return ""
}

// callerOf returns what a key allows. A wrong one is delayed by the server if its address has shown too
// many, and compared in constant time.
func (c *conn) callerOf(secret string) (caller, error) {
	ctx := metadata.NewIncomingContext(peer.NewContext(c.ctx, &peer.Peer{Addr: c.raw.RemoteAddr()}),
		metadata.Pairs("authorization", "Bearer "+secret))
	me, err := c.door.admin.WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
	if err != nil {
		return caller{}, err
	}
	as := caller{known: true, key: me.Key.GetKeyId(), role: me.Key.GetRole(), namespace: "default"}
	if spaces := me.Key.GetNamespaces(); len(spaces) > 0 {
		as.namespace = spaces[0]
	}
	if ids := me.Key.GetWorkerIds(); len(ids) == 1 && !strings.Contains(ids[0], "*") {
		as.only = ids[0]
	}
	return as, nil
}

// bind makes the connection speak for a worker. It returns an error's text if it speaks for another.
func (c *conn) bind(id string) (refusal string) {
	if err := engine.CheckWorkerID("worker_id", id); err != nil {
		return "ERR " + err.Error()
	}
	if isAnonymous(id) {
		return "ERR worker ids that begin with " + anonymousPrefix + " are those of connections; choose another"
	}
	if c.identity != "" && c.identity != id {
		return "ERR this connection speaks for the worker " + c.identity + "; open another one for " + id
	}
	c.identity = id
	return ""
}

// who returns the worker that the connection speaks for: the one that it has named, or one of its own, whose
// jobs return when the connection closes.
func (c *conn) who() server.Identity {
	if c.identity == "" {
		c.identity = anonymous()
	}
	return server.Identity{Namespace: c.caller.namespace, Worker: c.identity,
		Instance: "agq:" + c.caller.key + ":" + c.identity}
}

// anonymousPrefix begins the ids of workers that are one connection.
const anonymousPrefix = "agq-conn-"

func anonymous() string {
	token := engine.NewToken()
	return anonymousPrefix + token.Wire()[:16]
}

func isAnonymous(id string) bool { return strings.HasPrefix(id, anonymousPrefix) }

// notFound says whether an error of a call is that something does not exist.
func notFound(err error) bool { return err != nil && status.Code(err).String() == "NotFound" }
