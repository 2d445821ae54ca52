package kagzi

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"sync"
)

// ownBuild returns a hash of this program, "" if it cannot be read. Workers of one build run the same
// workflow code.
var ownBuild = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
})

const (
	// sdkCapability names the language of a worker, as PROTOCOL.md (§1.8) has it; its value is the SDK's version.
	sdkCapability   = "sdk:go"
	modulePath      = "github.com/kagzi/kagzi"
	maxCapabilities = 1024
)

// sdkVersion returns the version of this module in the program; "devel" when it was built in the repository.
var sdkVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	version := info.Main.Version
	for _, m := range info.Deps {
		if m.Path == modulePath {
			version = m.Version
		}
	}
	if version == "" || version == "(devel)" {
		return "devel"
	}
	return version
})

// withSDK returns capabilities with the SDK among them, unless there is no room for one more.
func withSDK(capabilities map[string]string) map[string]string {
	if len(capabilities) >= maxCapabilities {
		return capabilities
	}
	all := maps.Clone(capabilities)
	if all == nil {
		all = map[string]string{}
	}
	all[sdkCapability] = sdkVersion()
	return all
}
