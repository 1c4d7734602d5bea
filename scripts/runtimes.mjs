/**
 * Installs the other runtimes in which the packed library is tested: `node scripts/runtimes.mjs FOLDER`. Then
 * `SPOKE_TEST_RUNTIMES=FOLDER npx vitest run test/e2e/Package.test.ts` runs the tests. All files stay in the folder.
 */
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error("Name the folder to install them into.")

const system = `${process.platform}-${process.arch}`

/** The path of the program in its package. */
const programs = {
  node22: { package: `node-${system}@22`, file: `node_modules/node-${system}/bin/node` },
  node24: { package: `node-${system}@24`, file: `node_modules/node-${system}/bin/node` },
  bun: { package: `@oven/bun-${system}`, file: `node_modules/@oven/bun-${system}/bin/bun` },
  deno: { package: "deno", file: "node_modules/.bin/deno" },
  jest: { package: "jest@30", file: "node_modules/jest/bin/jest.js" },
  // It needs the JavaScript API of TypeScript 5, which later versions do not have.
  "openapi-typescript": {
    package: ["openapi-typescript@7.13.0", "typescript@5.9.3"],
    file: "node_modules/openapi-typescript/bin/cli.js"
  }
}

for (const [name, { file, package: specifiers }] of Object.entries(programs)) {
  const packageFolder = Path.resolve(folder, "packages", name)
  Fs.mkdirSync(packageFolder, { recursive: true })
  Fs.writeFileSync(Path.join(packageFolder, "package.json"), "{}")
  try {
    execFileSync(
      "npm",
      ["install", "--prefer-offline", "--no-audit", "--no-fund", "--silent", ...[specifiers].flat()],
      {
        cwd: packageFolder
      }
    )
  } catch {
    console.error(`${name}: ${specifiers} cannot be installed here`)
    continue
  }
  const link = Path.resolve(folder, name)
  Fs.rmSync(link, { force: true })
  Fs.symlinkSync(Path.join(packageFolder, file), link)
  console.log(`${name}: ${link}`)
}
