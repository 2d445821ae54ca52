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
	"github.com/kagzi/kagzi/sdk/profile"
)

// DefaultAddress is the address of a server without --listen.
const DefaultAddress = "127.0.0.1:50051"

// maxMessageBytes is the protocol's message limit, 8 MiB, plus space for framing.
const maxMessageBytes = 8<<20 + 64<<10

// DialOptions configures Dial. The zero value connects to DefaultAddress in plaintext without a
// key.
type DialOptions struct {
	Address     string        // host:port, or several separated by commas; default DefaultAddress
	APIKey      string        // sent with each call as "authorization: Bearer KEY"; empty: none
	UserAgent   string        // for the server's logs; default "kagzi"
	CallTimeout time.Duration // timeout of a unary call whose context has no deadline; 0: none
	TLS         *tls.Config   // nil: plaintext
	// Dialer replaces the network, to reach a server in this process. Address is then only a name
	// for messages.
	Dialer func(context.Context) (net.Conn, error)
}

// ErrInTheClear reports that a key would leave the machine unencrypted.
var ErrInTheClear = errors.New("the API key would go to another machine unencrypted")

// Dial returns a connection, which connects on the first call and reconnects after a loss. Errors
// are about the options: a malformed address, or ErrInTheClear.
func Dial(o DialOptions) (*Conn, error) {
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if o.UserAgent == "" {
		o.UserAgent = "kagzi"
	}
	if o.Dialer == nil {
		for _, address := range profile.Addresses(o.Address) {
			if err := checkAddress(address); err != nil {
				return nil, err
			}
		}
	}
	creds := insecure.NewCredentials()
	switch {
	case o.TLS != nil:
		creds = credentials.NewTLS(o.TLS)
	case o.APIKey != "" && o.Dialer == nil && !profile.Loopback(o.Address):
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
	target, several := profile.Target(o.Address, o.TLS)
	opts = append(opts, several...)
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

// Over returns the API over a connection that the caller closes.
func Over(conn grpc.ClientConnInterface) API {
	return clients{
		kagziv1.NewWorkflowServiceClient(conn),
		kagziv1.NewWorkflowScheduleServiceClient(conn),
		kagziv1.NewAdminServiceClient(conn),
		kagziv1.NewNamespaceServiceClient(conn),
	}
}

// checkAddress refuses an address that is not host:port; gRPC would only report that no server
// answers. Addresses with a scheme such as unix: or dns: are left to gRPC.
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

// bearer sends an API key with each call. It does not require TLS: Dial already has, unless the
// server is local.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(b))}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// bound adds a timeout to each unary call without a deadline, so that a silent network does not
// hang the terminal.
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
