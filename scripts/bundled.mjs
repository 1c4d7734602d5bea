/** Which npm packages became part of dist/: the builds record them, and the bill of materials lists them. */
import * as Path from "node:path"

/** The folder of a package in the path of one of its files. A package may have packages of its own. */
const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/

const sorted = (folders) => [...new Set(folders)].sort()

/** Folders, relative to `root`, of the packages that `files` are from. */
export const packagesOf = (root, files) =>
  sorted(
    files.flatMap((file) => {
      const [, path = ""] = /^\0?(?:[\w-]+:)?([^?]+)/.exec(file) ?? []
      const relative = Path.isAbsolute(path) ? Path.relative(root, path) : path
      return folder.exec(relative.split(Path.sep).join("/"))?.[0] ?? []
    })
  )

/** Files of which esbuild wrote at least a byte. */
export const filesOfMetafile = ({ outputs }) =>
  Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs)
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([file]) => file)
  )

/** Files of which Rollup wrote at least a character. */
export const filesOfRollup = ({ output }) =>
  output.flatMap(({ modules = {} }) =>
    Object.entries(modules)
      .filter(([id, { renderedLength }]) => renderedLength > 0 || id.endsWith(".css"))
      .map(([id]) => id)
  )
