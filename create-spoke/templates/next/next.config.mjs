/** Spoke starts threads and reads its own files, so it must stay outside the bundle. */
export default { serverExternalPackages: ["spoke"] }
