package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui/model"
)

func TestTheUIOpensTheChosenView(t *testing.T) {
	for _, test := range []struct {
		o    uiOptions
		want string
	}{
		{uiOptions{filter: "status:failed since:24h"}, `runs status:failed since:24h`},
		{uiOptions{filter: `error:"can't open"`}, `runs error:"can't open"`},
		{uiOptions{run: "mira's order"}, `run 'mira'"'"'s order'`},
		{uiOptions{view: "workers", filter: "it's"}, "workers"},
	} {
		if got := test.o.first(); got != test.want {
			t.Errorf("%+v begins with %s, want %s", test.o, got, test.want)
		}
	}
}

func TestCommandLinesInTheUIReachTheSameServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kagzi.toml")
	if err := os.WriteFile(file,
		[]byte("[client]\nnamespace = \"mine\"\n[profile.prod]\naddress = \"prod:1\"\nnamespace = \"shop\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range profile.Keys() {
		t.Setenv(profile.Variable(name), "")
	}
	t.Setenv("KAGZI_PROFILE", "")
	t.Setenv("KAGZI_CONFIG", file)
	for _, test := range []struct{ environment, given, namespace, want string }{
		{"", "", "mine", "kagzi workflow pause a"},
		{"", "", "default", "kagzi workflow pause a --namespace default"},
		{"", "--address prod:1 -n shop", "shop", "kagzi workflow pause a --namespace shop --address prod:1"},
		{"", "--profile prod --tls --tls-ca ca.crt --api-key-file k", "shop",
			"kagzi workflow pause a --profile prod --api-key-file k --tls=true --tls-ca ca.crt"},
		{"", "--profile prod", "default", "kagzi workflow pause a --namespace default --profile prod"},
		{"", "--profile off", "default", "kagzi workflow pause a --profile off"},
		{"prod:1", "", "mine", "kagzi workflow pause a"},
		{"prod:1", "--address 127.0.0.1:50051", "mine", "kagzi workflow pause a --address 127.0.0.1:50051"},
		{"", "--api-key kz_secret", "mine", "kagzi workflow pause a"},
	} {
		t.Setenv("KAGZI_ADDRESS", test.environment)
		s := &session{}
		e := s.env()
		cmd := newUI(e, &uiOptions{})
		if err := cmd.ParseFlags(strings.Fields(test.given)); err != nil {
			t.Fatal(err)
		}
		home := e.home(cmd.Flags())
		if err := e.resolve(cmd); err != nil {
			t.Fatal(err)
		}
		scope := model.Scope{Namespace: test.namespace, Address: e.flags.Address, Home: home}
		if got := scope.Pause([]string{"a"}, false, "").CommandLine(); got != test.want {
			t.Errorf("KAGZI_ADDRESS=%s kagzi tui %s, in namespace %s: %s, want %s", test.environment, test.given,
				test.namespace, got, test.want)
		}
		if got, want := scope.Reach(), strings.TrimPrefix(test.want, "kagzi workflow pause a"); got != want {
			t.Errorf("KAGZI_ADDRESS=%s kagzi tui %s, in namespace %s: reached with %q, want %q", test.environment,
				test.given, test.namespace, got, want)
		}
	}
}

func TestAFlagOfTheUISuggestsKagziTUI(t *testing.T) {
	for line, want := range map[string]string{
		"--address localhost:1": "did you mean: kagzi tui --address\n",
		"--demo":                "did you mean: kagzi tui --demo\n",
		"--adress localhost:1":  "see: kagzi --help\n",
	} {
		cmd, stderr := root((&session{}).env()), &strings.Builder{}
		addUI(cmd, (&session{}).env())
		code := Execute(t.Context(), cmd, strings.Fields(line), strings.NewReader(""), discard{}, stderr)
		if code != ExitUsage || !strings.HasSuffix(stderr.String(), want) {
			t.Errorf("kagzi %s: exit code %d, %q; want %d and %q at the end", line, code, stderr, ExitUsage, want)
		}
	}
}

func TestUIWithoutFlagsUsesTheServerSettings(t *testing.T) {
	for _, test := range []struct {
		listen, address string // from the environment
		want            string
		own             bool
	}{
		{"", "", "127.0.0.1:50051", true},
		{"127.0.0.1:7000", "", "127.0.0.1:7000", true},
		{"localhost:50051", "", "localhost:50051", true},
		{"0.0.0.0:7000", "", "localhost:7000", true},
		{"127.0.0.1:7000", "127.0.0.1:7000", "127.0.0.1:7000", true},
		{"127.0.0.1:7000", "127.0.0.1:50051", "127.0.0.1:50051", false},
		{"", "other:50051", "other:50051", false},
	} {
		for name, value := range map[string]string{
			"KAGZI_CONFIG": os.DevNull, "KAGZI_PROFILE": "off", "KAGZI_LISTEN": test.listen,
			"KAGZI_ADDRESS": test.address} {
			t.Setenv(name, value)
		}
		e := newEnv("test")
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		e.flags.Register(flags)
		if err := e.flags.Resolve(flags, e.lookup, e.find); err != nil {
			t.Fatal(err)
		}
		if own := e.goHome(); own != test.own || e.flags.Address != test.want {
			t.Errorf("KAGZI_LISTEN=%s KAGZI_ADDRESS=%s: it goes to %s, its own: %v", test.listen, test.address,
				e.flags.Address, own)
		}
	}
}
