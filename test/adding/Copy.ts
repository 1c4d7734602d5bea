/** A copy of the project's sources in a temporary folder, in which a test adds code, checks its types and builds it. */
import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { promisify } from "node:util"
import { root, temporaryFolder } from "../e2e/Spoke.ts"

const execute = promisify(execFile)

/** An addition to an existing file: `text` is inserted after the first occurrence of `after`. */
export interface Insertion {
  readonly file: string
  readonly after: string
  readonly text: string
}

/** A new file, with its contents. */
export interface Addition {
  readonly file: string
  readonly text: string
}

export interface Copy {
  readonly folder: string
  readonly insert: (insertion: Insertion) => void
  readonly add: (addition: Addition) => void
  /** The files with type errors, in alphabetical order, in the programs of the server and of the dashboard. */
  readonly filesWithErrors: () => Promise<ReadonlyArray<string>>
  /** Builds the server. Returns its program. */
  readonly build: () => Promise<string>
}

const copied = ["README.md", "docs", "migrations", "scripts", "src", "package.json", "package-lock.json"]

export const makeCopy = (): Copy => {
  const folder = temporaryFolder()
  for (const name of copied) Fs.cpSync(Path.join(root, name), Path.join(folder, name), { recursive: true })
  // The pages and the seed of the database do not depend on the additions.
  for (const name of ["ui", "seed.tgz"]) {
    const from = Path.join(root, "dist", name)
    if (Fs.existsSync(from)) Fs.cpSync(from, Path.join(folder, "dist", name), { recursive: true })
  }
  Fs.symlinkSync(Path.join(root, "node_modules"), Path.join(folder, "node_modules"), "dir")
  const options = JSON.parse(Fs.readFileSync(Path.join(root, "tsconfig.json"), "utf8"))
  Fs.writeFileSync(Path.join(folder, "tsconfig.json"), JSON.stringify({ ...options, include: ["src"] }))
  const place = (file: string) => Path.join(folder, file)

  const errorsOf = async (program: string): Promise<string> => {
    const compiler = Path.join(root, "node_modules/typescript/bin/tsc")
    const args = [compiler, "--noEmit", "--pretty", "false", "-p", program]
    try {
      await execute(process.execPath, args, { cwd: folder, maxBuffer: 16 * 1_048_576 })
      return ""
    } catch (error) {
      // Type errors end the compiler with a code. Anything else is a fault of this test.
      if (
        error instanceof Error &&
        "stdout" in error &&
        typeof error.stdout === "string" &&
        error.stdout !== ""
      )
        return error.stdout
      throw error
    }
  }

  return {
    folder,
    insert: ({ after, file, text }) => {
      const before = Fs.readFileSync(place(file), "utf8")
      const at = before.indexOf(after)
      if (at < 0) throw new Error(`${file} does not contain ${after}`)
      const end = at + after.length
      Fs.writeFileSync(place(file), `${before.slice(0, end)}${text}${before.slice(end)}`)
    },
    add: ({ file, text }) => {
      Fs.mkdirSync(Path.dirname(place(file)), { recursive: true })
      Fs.writeFileSync(place(file), text)
    },
    filesWithErrors: async () => {
      const output = `${await errorsOf(".")}\n${await errorsOf("src/ui")}`
      const files = Array.from(output.matchAll(/^(\S+?)\(\d+,\d+\): error TS/gmu), ([, file = ""]) => file)
      if (output.trim() !== "" && files.length === 0) throw new Error(output)
      return Array.from(new Set(files)).toSorted()
    },
    build: async () => {
      const program = `import { buildServer } from "./scripts/build.mjs"\nawait buildServer()\n`
      Fs.writeFileSync(place("build-server.mjs"), program)
      await execute(process.execPath, ["build-server.mjs"], { cwd: folder })
      return place("dist/main.js")
    }
  }
}
