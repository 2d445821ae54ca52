package agq_test

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// FuzzCommands sends any bytes to a server. Whatever it says is in the form of the protocol, and it goes on to
// serve others.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{
		encode("HELLO", "3", "AUTH", "w1", "x"), encode("WORKER.REGISTER", registration), encode("PLAN.SUBMIT", echoPlan),
		encode("ACTION.SUBMIT", `{"plan_id":"echo","inputs":[{"word":1}]}`), "ping w1\r\nbrpop queue:ready 0.01\r\n",
		encode("JOB.UPDATE", "x", `{"status":"completed","task_results":[{"task_number":1}]}`), encode("KEYS", "worker:*:*"),
		encode("SET", "worker:w1:tools", "a,b"), encode("SET", "job:x:stdout", "y"), encode("RESET") + encode("QUIT"),
		encode("BLMOVE", "queue:ready", "queue:processing", "RIGHT", "LEFT", "0.01"),
	} {
		f.Add([]byte(seed))
	}
	s := start(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, err := net.Dial("tcp", s.at)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := raw.Write(append(data, "\r\nQUIT\r\n"...)); err != nil {
			return // it has closed the connection already
		}
		_ = raw.(*net.TCPConn).CloseWrite()
		for r := bufio.NewReader(raw); ; {
			if _, err := r.Peek(1); err != nil {
				break // the end
			}
			if _, err := readAnswer(r); err != nil {
				t.Fatalf("%q is answered in no form of the protocol: %v", data, err)
			}
		}
		other := &client{t: t, raw: nil}
		if other.raw, err = net.Dial("tcp", s.at); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.raw.Close() }()
		other.r = bufio.NewReader(other.raw)
		other.want("+PONG", "PING")
	})
}
