/** The contents of an archive of `spoke export`. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { gunzipSync } from "node:zlib"

/** Every file in the folder and its subfolders, with its relative name, uncompressed. */
export const filesBelow = (
  folder: string
): ReadonlyArray<{ readonly name: string; readonly bytes: Buffer }> =>
  Fs.readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => Fs.statSync(Path.join(folder, name)).isFile())
    .toSorted()
    .map((name) => {
      const bytes = Fs.readFileSync(Path.join(folder, name))
      return { name: name.split(Path.sep).join("/"), bytes: name.endsWith(".gz") ? gunzipSync(bytes) : bytes }
    })
