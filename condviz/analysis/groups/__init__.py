"""What a condition does to a corpus: groups, pairs that it tells apart, and which conditions sort it at all."""

from condviz.analysis.groups.divide import CrossTable, Group, Groups, cross_table, group_by
from condviz.analysis.groups.sorting import SortingCondition, SortingConditions, rank_sorting_conditions
from condviz.analysis.groups.twins import Twin, Twins, find_twins

__all__ = [
    "CrossTable",
    "Group",
    "Groups",
    "SortingCondition",
    "SortingConditions",
    "Twin",
    "Twins",
    "cross_table",
    "find_twins",
    "group_by",
    "rank_sorting_conditions",
]
