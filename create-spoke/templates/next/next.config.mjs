/** Spoke has threads and files of its own: it stays outside the bundle. */
export default { serverExternalPackages: ["spoke"] }
