package dbfile

import "testing"

func TestALinkMayLeadToTheTopOfItsDrive(t *testing.T) {
	for there, want := range map[string]string{
		`\data\kagzi.db`: `D:\data\kagzi.db`, `E:\kagzi.db`: `E:\kagzi.db`, `kagzi.db`: `kagzi.db`} {
		if got := onDriveOf(`D:\links\kagzi.db`, there); got != want {
			t.Errorf("a link on D: to %s leads to %s, want %s", there, got, want)
		}
	}
}
