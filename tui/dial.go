package tui

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/wire"
)

// DefaultAddress is where a server listens when nothing else is said.
const DefaultAddress = "127.0.0.1:50051"

// maxMessageBytes is the protocol's message limit, 8 MiB, and room for the framing around it.
const maxMessageBytes = 8<<20 + 64<<10

// DialOptions say how to reach a server. The zero value means plaintext to DefaultAddress without a key.
type DialOptions struct {
	Address     string        // host:port; empty means DefaultAddress
	APIKey      string        // sent with each call as "authorization: Bearer KEY"; empty sends none
	UserAgent   string        // for the server's logs; empty means "kagzi"
	CallTimeout time.Duration // bound of a unary call whose context has no deadline; 0 means none
	TLS         *tls.Config   // nil: plaintext
	// Dialer makes the connections in place of the network, for a server within the process;
	// Address is then a name for messages.
	Dialer func(context.Context) (net.Conn, error)
}

// ErrInTheClear says that a key would have left the machine unencrypted.
var ErrInTheClear = errors.New("the API key would go to another machine unencrypted")

// Dial prepares a connection; it is made with the first call, and made again by itself after a loss. Errors are
// about the options: a malformed address, ErrInTheClear.
func Dial(o DialOptions) (*Conn, error) {
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if o.UserAgent == "" {
		o.UserAgent = "kagzi"
	}
	if o.Dialer == nil {
		if err := checkAddress(o.Address); err != nil {
			return nil, err
		}
	}
	creds := insecure.NewCredentials()
	switch {
	case o.TLS != nil:
		creds = credentials.NewTLS(o.TLS)
	case o.APIKey != "" && o.Dialer == nil && !loopback(o.Address):
		return nil, ErrInTheClear
	}
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithUserAgent(o.UserAgent),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2,
				MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
		grpc.WithChainUnaryInterceptor(wire.NameText),
	}
	if o.APIKey != "" {
		opts = append(opts, grpc.WithPerRPCCredentials(bearer(o.APIKey)))
	}
	if o.CallTimeout > 0 {
		opts = append(opts, grpc.WithUnaryInterceptor(bound(o.CallTimeout)))
	}
	target := o.Address
	if o.Dialer != nil {
		target = "passthrough:///kagzi"
		opts = append(opts, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return o.Dialer(ctx)
		}))
	}
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", o.Address, err)
	}
	return &Conn{conn: conn, API: Over(conn)}, nil
}

// Over is the API over a connection that its caller looks after.
func Over(conn grpc.ClientConnInterface) API {
	return clients{
		kagziv1.NewWorkflowServiceClient(conn),
		kagziv1.NewWorkflowScheduleServiceClient(conn),
		kagziv1.NewAdminServiceClient(conn),
		kagziv1.NewNamespaceServiceClient(conn),
	}
}

// checkAddress refuses what is no host:port; gRPC itself would only find no server there. Names with a scheme such as
// unix: or dns: are gRPC's to judge.
func checkAddress(address string) error {
	scheme, _, target := strings.Cut(address, "://")
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "dns:") || target &&
		!strings.HasPrefix(scheme, "http") {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if _, bad := net.LookupPort("tcp", port); err != nil || bad != nil || strings.ContainsAny(host, " /") {
		return fmt.Errorf("address %q: want host:port", address)
	}
	return nil
}

// loopback says that what goes to the address does not leave the machine.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) || strings.HasPrefix(address, "unix:")
}

// bearer sends an API key with each call. It does not insist on TLS: Dial has, where the server is not on this machine.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(b))}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// bound gives each unary call without a deadline one, so that a silent network does not hang a terminal.
func bound(limit time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		if _, set := ctx.Deadline(); !set {
			limited, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			ctx = limited
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}
