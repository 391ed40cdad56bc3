module github.com/weirflow/weir/tools

go 1.26
