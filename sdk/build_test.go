package kagzi

import (
	"fmt"
	"testing"
)

func TestAWorkerNamesItsSDKAmongItsCapabilities(t *testing.T) {
	given := map[string]string{"gpu": "a100"}
	got := withSDK(given)
	if len(got) != 2 || got["gpu"] != "a100" || got["sdk:go"] == "" {
		t.Errorf("got %v, want gpu and the version of sdk:go", got)
	}
	if len(given) != 1 {
		t.Errorf("the options of the application were changed to %v", given)
	}
	if got := withSDK(nil); len(got) != 1 || got["sdk:go"] == "" {
		t.Errorf("without capabilities got %v, want sdk:go alone", got)
	}
	full := map[string]string{}
	for i := range maxCapabilities {
		full[fmt.Sprint(i)] = ""
	}
	if got := withSDK(full); len(got) != maxCapabilities || got["sdk:go"] != "" {
		t.Errorf("a worker with all capabilities that are allowed names %d, want %d", len(got), maxCapabilities)
	}
}
