package agq

import (
	"fmt"
	"strings"
)

// Clients of Redis send these first, to say who they are and to find out what they talk to.

// version is that of Redis whose clients may expect what is here; Kagzi's own is in the field kagzi.
const version = "7.2.0"

func runAuth(c *conn, args []string) bool {
	user, secret := "", args[0]
	if len(args) == 2 {
		user, secret = args[0], args[1]
	}
	if text := c.authenticate(user, secret); text != "" {
		c.fail(text)
		return true
	}
	c.ok()
	return true
}

// runHello carries out HELLO [2|3 [AUTH user key] [SETNAME name]].
func runHello(c *conn, args []string) bool {
	c.mu.Lock()
	three := c.pending.three
	c.mu.Unlock()
	var user, secret string
	shown := false
	if len(args) > 0 {
		if args[0] != "2" && args[0] != "3" {
			c.fail("NOPROTO unsupported protocol version")
			return true
		}
		three = args[0] == "3"
		for rest := args[1:]; len(rest) > 0; {
			switch word := strings.ToUpper(rest[0]); {
			case word == "AUTH" && len(rest) > 2:
				user, secret, shown, rest = rest[1], rest[2], true, rest[3:]
			case word == "SETNAME" && len(rest) > 1:
				c.name, rest = cut(rest[1], 64), rest[2:]
			default:
				c.fail("ERR syntax error in HELLO")
				return true
			}
		}
	}
	if shown {
		if text := c.authenticate(user, secret); text != "" {
			c.fail(text)
			return true
		}
	}
	if !c.caller.known {
		c.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> " +
			"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version " +
			"at the same time")
		return true
	}
	c.say(func(r *reply) {
		r.three = three
		r.dictionary(7)
		r.bulk("server")
		r.bulk("kagzi")
		r.bulk("version")
		r.bulk(version)
		r.bulk("proto")
		r.integer(map[bool]int64{false: 2, true: 3}[three])
		r.bulk("id")
		r.integer(c.number)
		r.bulk("mode")
		r.bulk("standalone")
		r.bulk("role")
		r.bulk("master")
		r.bulk("modules")
		r.array(0)
	})
	return true
}

func runClient(c *conn, args []string) bool {
	switch strings.ToUpper(args[0]) {
	case "SETNAME":
		if len(args) == 2 {
			c.name = cut(args[1], 64)
		}
		c.ok()
	case "SETINFO", "NO-EVICT", "NO-TOUCH", "REPLY":
		c.ok()
	case "GETNAME":
		c.bulk(c.name)
	case "ID":
		c.integer(c.number)
	case "LIST", "INFO":
		c.bulk(fmt.Sprintf("id=%d addr=%s name=%s\n", c.number, c.raw.RemoteAddr(), oneLine(c.name)))
	default:
		c.fail("ERR unknown subcommand '" + cut(args[0], 32) + "' of CLIENT")
	}
	return true
}

func runInfo(c *conn, _ []string) bool {
	connections, workers := c.door.Connections()
	c.bulk(fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nkagzi:agq\r\n\r\n"+
		"# Clients\r\nconnected_clients:%d\r\nagq_workers:%d\r\n\r\n# Persistence\r\nloading:0\r\n\r\n"+
		"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n", version, connections, workers))
	return true
}

func runCommand(c *conn, args []string) bool {
	if len(args) > 0 && strings.EqualFold(args[0], "COUNT") {
		c.integer(int64(len(commands)))
		return true
	}
	docs := len(args) > 0 && strings.EqualFold(args[0], "DOCS")
	c.say(func(r *reply) {
		if docs {
			r.dictionary(0)
			return
		}
		r.array(0)
	})
	return true
}

func runConfig(c *conn, args []string) bool {
	if !strings.EqualFold(args[0], "GET") {
		c.fail("ERR Kagzi's settings are those of kagzi server; see kagzi help server")
		return true
	}
	c.say(func(r *reply) { r.dictionary(0) })
	return true
}

func runSelect(c *conn, args []string) bool {
	if args[0] != "0" {
		c.fail("ERR DB index is out of range")
		return true
	}
	c.ok()
	return true
}

func runQuit(c *conn, _ []string) bool {
	c.ok()
	return false
}

// runReset makes the connection as it was at its beginning.
func runReset(c *conn, _ []string) bool {
	c.leave()
	c.identity, c.secret, c.name, c.tools, c.reported = "", "", "", nil, ""
	if c.door.server.Keyless(c.ctx) {
		c.admit(caller{known: true, open: true, namespace: "default"})
	} else {
		c.caller, c.reader.limit = caller{}, maxStranger
	}
	c.mu.Lock()
	c.fenced, c.popped = false, 0
	c.sayLocked(func(r *reply) {
		r.three = false
		r.simple("RESET")
	})
	c.mu.Unlock()
	return true
}

func runEcho(c *conn, args []string) bool {
	c.bulk(args[0])
	return true
}
