/** Checks package-lock.json and flake.lock in a folder, and returns a list of violations. */
import * as Fs from "node:fs"
import * as Path from "node:path"

/**
 * The revision of nixpkgs that this project was reviewed with. Public locks of other projects have the same hash. To
 * update, copy all three values from the output of `nix flake update` on a machine that can reach nixpkgs.
 */
const pin = {
  rev: "b51242d7d43689db2f3be91bd05d5b24fbb469c4",
  narHash: "sha256-K5sT4jTpGs15ADhviMKNBH38REpPf5Q6mM1+N6cArVE=",
  lastModified: 1_780_203_844
}

const sha512 = /^sha512-[A-Za-z0-9+/]{86}==$/

/** Packages of other systems than Linux with glibc on these processors are never fetched. */
const isFetched = ({ os = [], cpu = [], libc = [] }) =>
  [
    [os, ["linux"]],
    [cpu, ["x64", "arm64"]],
    [libc, ["glibc"]]
  ].every(
    ([allowed, ours]) => allowed.length === 0 || allowed.some((one) => one[0] === "!" || ours.includes(one))
  )

const ofPackages = ({ packages }) =>
  Object.entries(packages)
    .filter(([path]) => path !== "")
    .flatMap(([path, entry]) => [
      ...(isFetched(entry) && !sha512.test(entry.integrity ?? "")
        ? [`package-lock.json: ${path} has no sha512 integrity`]
        : []),
      ...("resolved" in entry ? [`package-lock.json: ${path} names an address`] : [])
    ])

const ofFlake = (lock, flake) => {
  const [, ref] = /nixpkgs\.url = "github:NixOS\/nixpkgs\/([\w.-]+)"/.exec(flake) ?? []
  const { locked, original } = lock.nodes.nixpkgs ?? {}
  return [
    ...(Object.keys(lock.nodes).sort().join() === "nixpkgs,root"
      ? []
      : ["flake.lock: nixpkgs is to be its one input"]),
    ...(original?.ref === ref ? [] : ["flake.lock: not of the branch that flake.nix names"]),
    ...Object.entries(pin)
      .filter(([name, value]) => locked?.[name] !== value)
      .map(([name]) => `flake.lock: ${name} is not the reviewed one`)
  ]
}

export const problems = (root) => {
  const read = (name) => Fs.readFileSync(Path.join(root, name), "utf8")
  return [
    ...ofPackages(JSON.parse(read("package-lock.json"))),
    ...ofFlake(JSON.parse(read("flake.lock")), read("flake.nix"))
  ]
}
