"""Dagster components. Instances are YAML files under rag_assets/defs/."""

from rag_assets.components.evaluation_suite import EvaluationSuite

__all__ = ["EvaluationSuite"]
