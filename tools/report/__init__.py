"""HTML reports: one file that needs no network; a page of sections, with tables that are tables and inline pictures."""
