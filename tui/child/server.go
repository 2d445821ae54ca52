package child

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

// ServerSpec says what a private server is to be like. Its settings come from here alone: no environment and no
// configuration file reaches it.
type ServerSpec struct {
	DataDir string   // of its database, locks and logs; also its working directory
	DB      string   // a database URL; empty means SQLite in DataDir
	Flags   []string // further flags of the command server
	Log     io.Writer
}

// Server is a server process that listens on a free port of the loopback interface.
type Server struct {
	*Process
	Address string // host:port
	Info    *kagziv1.GetServerInfoResponse
}

// StartServer starts a server and waits until it answers.
func StartServer(ctx context.Context, spec ServerSpec) (*Server, error) {
	args := append([]string{"server", "--data-dir", spec.DataDir, "--listen", "127.0.0.1:0", "--http", "off",
		"--config", "off"}, spec.Flags...)
	var env []string
	if spec.DB != "" {
		// not a flag: process lists show those, and a URL may hold a password
		env = append(env, "KAGZI_DB_URL="+spec.DB)
	}
	p, err := Start(Spec{Args: args, Env: env, Dir: spec.DataDir, Log: spec.Log})
	if err != nil {
		return nil, err
	}
	s := &Server{Process: p}
	s.Address, err = p.Await(ctx, func(line string) (string, bool) {
		for _, address := range announced.FindAllString(line, -1) {
			if s.Info, err = Ask(ctx, tui.DialOptions{Address: address}, answerLimit,
				grpc.WaitForReady(true)); err == nil {
				return address, true
			}
		}
		return "", false
	})
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("private server: %w", err)
	}
	return s, nil
}

// announced finds addresses in what a server prints. Which of them is the right one is not told by the wording
// around it, but by who answers there.
var announced = regexp.MustCompile(`\b127\.0\.0\.1:[1-9][0-9]*\b`)

// answerLimit is how long an address that was announced may take to answer.
const answerLimit = 5 * time.Second

// Ask asks who serves at an address. It waits at most limit for an answer, but not for a server
// that is not there, unless an option says so.
func Ask(ctx context.Context, o tui.DialOptions, limit time.Duration,
	options ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	conn, err := tui.Dial(o)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return conn.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{}, options...)
}
