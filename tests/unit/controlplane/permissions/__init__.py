"""Tests of the permissions of every kind of credential, which two tables define."""
