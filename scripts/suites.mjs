import * as Fs from "node:fs"
import * as Path from "node:path"
import { root } from "./seed.mjs"

/**
 * Suites of many or hostile inputs, of large agents, of data directories, and of whole work flows in the library. They take
 * a quarter of the time of all suites without real processes.
 */
export const heavySuites = [
  /^test\/capabilities\/ModelRuntime\/EveryByte\./,
  /^test\/capabilities\/VectorSearch\/(PgvectorLarge|PgvectorServer|Scope)\./,
  /^test\/library\/(Canaries|Corrections|Mounts)\./,
  /^test\/store\/database\/(DataDirectoryLock|Embedded|EmbeddedMaintenance|OpenFiles|Panic)\./,
  /^test\/usecases\/chat\/(HostileContent|RunPassageStorage|ScopedTurns)\./,
  /^test\/usecases\/knowledge\/(Crawl|HostileUrls)\./
]

/** Suites that start servers, browsers or packages, or run many random inputs. */
const longSuites = [
  ...heavySuites,
  /^test\/(adding|bench|browser|faults|growth)\//,
  // One suite of a real process remains: it goes through the whole API.
  /^test\/e2e\/(?!Specification\.)/,
  /^test\/capabilities\/DocumentParser\/HostileDocuments\./,
  /^test\/channels\/Fuzz\./,
  /^test\/library\/Transports\./,
  /^test\/readers\/Picture\./,
  /^test\/store\/database\/MigrationKill\./
]

/** All test files, as paths from the root. */
export const testFiles = () =>
  Fs.readdirSync(Path.join(root, "test"), { recursive: true })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => `test/${file}`)
    .toSorted()

/** The test files that `npm test` leaves out. */
export const longFiles = () => testFiles().filter((file) => longSuites.some((suites) => suites.test(file)))
