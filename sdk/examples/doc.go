// Package examples holds programs that show how Kagzi is used, one in each folder. The SDK's guide
// in ../guide quotes them; a test of this package keeps quotes and files the same.
package examples
