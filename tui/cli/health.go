package cli

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// Health asks the server that listens at an address of this machine whether it serves; an empty address is the server's default. How
// to trust its certificate is what the environment and kagzi.toml say. It needs no key. The error is one line, fit for a terminal.
func Health(ctx context.Context, listen string) error {
	p, err := reaching(listen)
	if err != nil {
		return err
	}
	o := tui.DialOptions{Address: p.Address}
	if o.TLS, err = p.TLSConfig(); err != nil {
		return err
	}
	conn, err := tui.Dial(o)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := conn.HealthCheck(ctx, &kagziv1.HealthCheckRequest{})
	switch {
	case err != nil:
		lines, _ := explain(&callError{address: p.Address, namespace: p.Namespace, err: err})
		return errors.New(lines[0])
	case answer.GetStatus() != kagziv1.ServingStatus_SERVING_STATUS_SERVING:
		return errors.New(render.Safe(answer.GetMessage()))
	}
	return nil
}

// reaching is how a server of this machine is reached. Where clients go, by a profile or KAGZI_ADDRESS, may be another machine's.
func reaching(listen string) (profile.Profile, error) {
	return profile.Resolve(profile.Profile{Address: cmp.Or(local(listen), profile.DefaultAddress)})
}

// local is where a client on this machine finds who listens at an address.
func local(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.Unmap().IsUnspecified() {
		host = "localhost" // the name that a certificate is likely to have
	}
	return net.JoinHostPort(host, port)
}
