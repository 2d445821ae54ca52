package browser

import (
	"errors"
	"slices"
	"testing"
)

func TestTheBrowserOfEachSystemGetsTheAddressAsOneArgument(t *testing.T) {
	const page = "http://127.0.0.1:50052/n/a%20b/runs/x?q=%24%28id%29&y=%22"
	for name, c := range map[string]struct {
		system string
		env    map[string]string
		want   []string
	}{
		"Linux with X":         {"linux", map[string]string{"DISPLAY": ":0"}, []string{"xdg-open", page}},
		"Linux with Wayland":   {"linux", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, []string{"xdg-open", page}},
		"Linux, X forwarded":   {"linux", map[string]string{"DISPLAY": ":10", "SSH_CONNECTION": "a"}, []string{"xdg-open", page}},
		"Linux by SSH":         {"linux", map[string]string{"SSH_CONNECTION": "a"}, nil},
		"Linux without screen": {"linux", nil, nil},
		"WSL":                  {"linux", map[string]string{"WSL_DISTRO_NAME": "Debian"}, []string{"wslview", page}},
		"macOS":                {"darwin", nil, []string{"open", page}},
		"macOS by SSH":         {"darwin", map[string]string{"SSH_CONNECTION": "a"}, nil},
		"Windows":              {"windows", nil, []string{"rundll32", "url.dll,FileProtocolHandler", page}},
	} {
		got, err := Command(c.system, page, func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if !slices.Equal(got, c.want) || (c.want == nil) != errors.Is(err, ErrNone) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestOnlyPagesAreOpened(t *testing.T) {
	for _, bad := range []string{"", "file:///etc/passwd", "/bin/sh", "javascript:alert(1)", "http://", "--help", "calc.exe"} {
		if got, err := Command("windows", bad, func(string) (string, bool) { return "", false }); err == nil {
			t.Errorf("%q runs %q", bad, got)
		}
	}
}
