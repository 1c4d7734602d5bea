/**
 * Names the images of deploy/images.env by digest. A tag can come to mean another image, a digest cannot.
 *
 *   node scripts/images.mjs pin              asks their registries, with skopeo, and writes the current digests
 *   node scripts/images.mjs check            fails if one has no digest
 *   node scripts/images.mjs build TAG        builds the image of a release: fails if a base image has no digest
 *
 * `build` runs `docker build`, or the program that CONTAINER_TOOL names.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { parseArgs } from "node:util"

const root = Path.join(import.meta.dirname, "..")
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { file: { type: "string", default: Path.join(root, "deploy/images.env") } }
})
const [command, tag] = positionals
const text = Fs.readFileSync(values.file, "utf8")
const images = Array.from(text.matchAll(/^([A-Z]+_IMAGE)=(\S+)$/gmu), ([, name, image]) => ({ name, image }))
const baseNames = ["NODE_IMAGE", "RUNTIME_IMAGE"]

const isPinned = ({ image }) => /@sha256:[0-9a-f]{64}$/u.test(image)

/** Fails and names those of `selected` that have no digest. */
const check = (selected) => {
  const unpinned = selected.filter((image) => !isPinned(image))
  for (const { image, name } of unpinned) console.error(`${name} has no digest: ${image}`)
  if (unpinned.length === 0) return
  console.error("Run `node scripts/images.mjs pin` where the registries can be reached.")
  process.exit(1)
}

/** The digest of a manifest, for all platforms of the image, is the hash of its bytes. */
const digestOf = (image) => {
  const manifest = execFileSync("skopeo", ["inspect", "--raw", `docker://${image}`], {
    maxBuffer: 16 * 1_048_576
  })
  return `sha256:${createHash("sha256").update(manifest).digest("hex")}`
}

const pin = () => {
  let pinned = text
  for (const { image, name } of images) {
    const [tagged = ""] = image.split("@", 1)
    const line = `${name}=${tagged}@${digestOf(tagged)}`
    pinned = pinned.replace(new RegExp(`^${name}=.*$`, "mu"), line)
    console.log(line)
  }
  Fs.writeFileSync(values.file, pinned)
}

const build = () => {
  if (tag === undefined) throw new Error("Name the tag of the image.")
  const baseImages = images.filter(({ name }) => baseNames.includes(name))
  check(baseImages)
  const buildArgs = baseImages.flatMap(({ image, name }) => ["--build-arg", `${name}=${image}`])
  const tool = process.env.CONTAINER_TOOL ?? "docker"
  execFileSync(tool, ["build", ...buildArgs, "--tag", tag, root], { stdio: "inherit" })
}

if (command === "pin") pin()
else if (command === "check") check(images)
else if (command === "build") build()
else throw new Error("Say pin, check or build.")
