"""The command line: one file for each verb. Shows things to people; decides nothing."""
