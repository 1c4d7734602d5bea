/** Migrations of a release are applied to databases of others, so they must not change. */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { expect, it } from "vitest"
import { migrations } from "../../TestDatabase.ts"

const checksumOf = (text: string) => createHash("sha256").update(text.replaceAll("\r\n", "\n")).digest("hex")

/** The files of a list that do not match it. */
const changed = (folder: string, list: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.entries(list).flatMap(([file, checksum]) => {
    const path = Path.join(folder, file)
    return Fs.existsSync(path) && checksumOf(Fs.readFileSync(path, "utf8")) === checksum ? [] : [file]
  })

it("No migration that has been released is changed, renamed or removed", () => {
  const list: unknown = JSON.parse(Fs.readFileSync(Path.join(migrations, "frozen.json"), "utf8"))
  expect(changed(migrations, list as Record<string, string>)).toEqual([])
})

it("A released migration that is changed or removed is noticed", () => {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-frozen-"))
  try {
    Fs.writeFileSync(Path.join(folder, "0001_a.sql"), "create table a ()")
    Fs.writeFileSync(Path.join(folder, "0002_b.sql"), "create table b ()")
    const list = {
      "0001_a.sql": checksumOf("create table a ()"),
      "0002_b.sql": checksumOf("create table b (id int)"),
      "0003_c.sql": checksumOf("create table c ()")
    }
    expect(changed(folder, list)).toEqual(["0002_b.sql", "0003_c.sql"])
  } finally {
    Fs.rmSync(folder, { recursive: true })
  }
})
