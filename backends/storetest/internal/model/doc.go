// Package model compares stores with a plain model of the contract: both get the same random calls
// and must answer alike.
package model
