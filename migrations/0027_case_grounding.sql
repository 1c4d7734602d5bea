-- Whether a reply must cite something and no citation of it may be unsupported. Null or false: nothing is expected of it.
alter table test_cases add column expect_grounding boolean;
