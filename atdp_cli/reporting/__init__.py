"""The privacy report: as data, JSON, HTML, model card and charts; its verification. Private."""
