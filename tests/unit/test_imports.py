"""The modules of the product form no circles; who may import whom is import-linter's business."""

from graphlib import TopologicalSorter

import grimp


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph(
        "agent", "collectors", "controlplane", exclude_type_checking_imports=True, cache_dir=None
    )
    imports = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    assert len(imports) > 300
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle
