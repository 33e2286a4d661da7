"""Tests of the incidents that devices report, and of shared incidents."""
