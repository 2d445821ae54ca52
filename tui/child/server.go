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

// ServerSpec describes a private server. All its settings come from here, none from the environment
// or a settings file.
type ServerSpec struct {
	DataDir string   // for its database, locks and logs; also its working directory
	DB      string   // database URL; empty: SQLite in DataDir
	Flags   []string // more flags of the server command
	Log     io.Writer
}

// Server is a server process on a free loopback port.
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
		// not a flag: process lists show those, and a URL may have a password
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

// announced matches addresses in a server's output. The right one is the one where a server
// answers, so that the wording around it does not matter.
var announced = regexp.MustCompile(`\b127\.0\.0\.1:[1-9][0-9]*\b`)

// answerLimit limits how long a printed address may take to answer.
const answerLimit = 5 * time.Second

// Ask returns who serves at an address. It waits at most limit for an answer, but not for a missing
// server, unless an option says so.
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
